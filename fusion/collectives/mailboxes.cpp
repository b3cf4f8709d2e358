// A mailbox is empty, or it belongs to one lane from a message's first piece until its last one has been taken. Who has
// taken it for a lane writes a piece, then it is the receiver's turn, then the sender's again if there is more. So all
// that the two write belongs to one of them at a time, and the pieces of two messages never mix. Whose turn it is and
// the lane are one number: who looks for another lane's sees no half of either.
#include "fusion/collectives/mailboxes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace hfta::fusion {
namespace {

constexpr std::uint32_t kEmpty = 0, kSenders = 1, kReceivers = 2;
constexpr int kTurnBits = 2;

// Lanes with the same mailbox differ in their numbers divided by kLanes.
std::uint32_t turn_of(std::uint32_t whose, int lane) {
  return static_cast<std::uint32_t>(lane / kLanes) << kTurnBits | whose;
}

void check_call(const char* call, const Seat& seat, int other, int lane) {
  const bool next = other == seat.rank() - 1 || other == seat.rank() + 1;
  if (next && other >= 0 && other < seat.ranks() && lane >= 0) return;
  throw Error(ErrorKind::kInternal,
              fmt::format("{}: found rank {} and lane {} at rank {} of {}, wanted a rank next to it and a lane from 0",
                          call, other, lane, seat.rank(), seat.ranks()));
}

void wait_until(const Seat& seat, const Mailbox& box, int other, std::uint32_t turn) {
  seat.wait_for(box.turn, other, [turn](std::uint32_t value) { return value == turn; });
}

// Takes an empty mailbox for the lane: other threads send on lanes with the same mailbox.
bool take_if_empty(Mailbox& box, int lane) {
  std::uint32_t empty = kEmpty;
  return box.turn.compare_exchange_strong(empty, turn_of(kSenders, lane), std::memory_order_acquire);
}

// Writes a message to a mailbox that was taken for the lane.
void put_into(Mailbox& box, const Seat& seat, int to, int lane, std::span<const std::byte> bytes) {
  const GroupMemory& memory = seat.memory();
  std::byte* const window = memory.mail(seat.rank(), to, lane);
  const std::uint32_t own = turn_of(kSenders, lane);
  box.size = bytes.size();
  std::size_t begin = 0;
  do {
    if (begin > 0) wait_until(seat, box, to, own);
    const std::size_t n = std::min<std::size_t>(memory.header().window, bytes.size() - begin);
    if (n > 0) std::memcpy(window, bytes.data() + begin, n);
    publish(box.turn, turn_of(kReceivers, lane));
    begin += n;
  } while (begin < bytes.size());
}

}  // namespace

void send_mail(Seat& seat, int to, int lane, std::span<const std::byte> bytes) {
  check_call("send", seat, to, lane);
  seat.check_whole();
  Mailbox& box = seat.memory().mailbox(seat.rank(), to, lane);
  do {
    wait_until(seat, box, to, kEmpty);
  } while (!take_if_empty(box, lane));
  put_into(box, seat, to, lane, bytes);
}

bool send_mail_at_once(Seat& seat, int to, int lane, std::span<const std::byte> bytes) {
  check_call("send", seat, to, lane);
  seat.check_whole();
  Mailbox& box = seat.memory().mailbox(seat.rank(), to, lane);
  if (bytes.size() > seat.memory().header().window || !take_if_empty(box, lane)) return false;
  put_into(box, seat, to, lane, bytes);
  return true;
}

void await_mail(Seat& seat, int from, int lane) {
  check_call("await", seat, from, lane);
  seat.check_whole();
  wait_until(seat, seat.memory().mailbox(from, seat.rank(), lane), from, turn_of(kReceivers, lane));
}

void receive_mail(Seat& seat, int from, int lane, std::span<std::byte> bytes) {
  check_call("receive", seat, from, lane);
  seat.check_whole();
  const GroupMemory& memory = seat.memory();
  Mailbox& box = memory.mailbox(from, seat.rank(), lane);
  const std::byte* const window = memory.mail(from, seat.rank(), lane);
  std::size_t begin = 0;
  do {
    wait_until(seat, box, from, turn_of(kReceivers, lane));
    if (box.size != bytes.size()) {
      seat.lose(fmt::format("rank {} sends {} bytes on lane {}, rank {} receives {}", from, box.size, lane, seat.rank(),
                            bytes.size()));
    }
    const std::size_t n = std::min<std::size_t>(memory.header().window, bytes.size() - begin);
    if (n > 0) std::memcpy(bytes.data() + begin, window, n);
    begin += n;
    publish(box.turn, begin < bytes.size() ? turn_of(kSenders, lane) : kEmpty);
  } while (begin < bytes.size());
}

}  // namespace hfta::fusion
