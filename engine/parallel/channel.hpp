#pragma once
/// Messages between the processes of one run.

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <utility>

#include "base/folder.hpp"

namespace hfta::engine {

/// One end of a stream between two processes. A message is a JSON value, and arrives with the same bits in its numbers;
/// it may hold binary values. Used by one thread at a time.
class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}
  /// Throws Error{kDevice} if the other end is closed.
  void send(const nlohmann::json& message);
  /// Waits for the next message; nullopt: the other end was closed, in the midst of a message perhaps.
  [[nodiscard]] std::optional<nlohmann::json> receive();
  /// Whether a message, or the end, comes within that time. May be asked by several threads at once.
  [[nodiscard]] bool comes_within(std::chrono::milliseconds time) const;
  /// Whether the other end is closed; messages may be left. May be asked by another thread meanwhile.
  [[nodiscard]] bool is_closed() const;
  [[nodiscard]] const Descriptor& socket() const { return socket_; }

 private:
  Descriptor socket_;
};

/// The two ends of a new stream, closed on exec. Throws Error{kDevice} where the system refuses.
[[nodiscard]] std::pair<Descriptor, Descriptor> make_stream();

}  // namespace hfta::engine
