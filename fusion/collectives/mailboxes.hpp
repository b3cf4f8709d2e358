#pragma once
/// Messages between ranks of a group that are next to each other.

#include <cstddef>
#include <span>

#include "fusion/collectives/seat.hpp"

namespace hfta::fusion {

/// Collectives::send(), send_at_once(), await() and receive(), as called by the rank that has `seat`.
void send_mail(Seat& seat, int to, int lane, std::span<const std::byte> bytes);
[[nodiscard]] bool send_mail_at_once(Seat& seat, int to, int lane, std::span<const std::byte> bytes);
void await_mail(Seat& seat, int from, int lane);
void receive_mail(Seat& seat, int from, int lane, std::span<std::byte> bytes);

}  // namespace hfta::fusion
