#include "engine/parallel/channel.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

using nlohmann::json;

// A message is the number of its bytes, and then these bytes, which are CBOR.
using Length = std::uint64_t;
constexpr std::size_t kPiece = std::size_t{1} << 24;  // bytes that room is made for at first, before they have come

// Reads so many bytes. Returns whether all of them came.
bool read_all(int socket, void* to, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

void write_all(int socket, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      throw Error(ErrorKind::kDevice, fmt::format("a process of this run cannot be reached: {}", std::strerror(errno)));
    }
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
}

}  // namespace

void Channel::send(const json& message) {
  const std::vector<std::uint8_t> bytes = json::to_cbor(message);
  const Length length = bytes.size();
  write_all(socket_.get(), &length, sizeof length);
  write_all(socket_.get(), bytes.data(), bytes.size());
}

std::optional<json> Channel::receive() {
  Length length = 0;
  if (!read_all(socket_.get(), &length, sizeof length)) return std::nullopt;
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < length) {
    const std::size_t before = bytes.size();
    const std::size_t piece = std::min<std::size_t>(length - before, std::max(kPiece, before));
    bytes.resize(before + piece);
    if (!read_all(socket_.get(), bytes.data() + before, piece)) return std::nullopt;
  }
  json message = json::from_cbor(bytes, true, false);
  if (message.is_discarded()) {
    throw Error(
        ErrorKind::kInternal,
        fmt::format("ranks: found {} bytes that are no message, wanted CBOR, from a process of this run", length));
  }
  return message;
}

bool Channel::comes_within(std::chrono::milliseconds time) const {
  struct pollfd waiting = {socket_.get(), POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(time.count())) > 0;
}

bool Channel::is_closed() const {
  struct pollfd looked_at = {socket_.get(), 0, 0};
  return ::poll(&looked_at, 1, 0) > 0 && (looked_at.revents & (POLLHUP | POLLERR)) != 0;
}

std::pair<Descriptor, Descriptor> make_stream() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw Error(ErrorKind::kDevice, fmt::format("cannot connect two processes: {}", std::strerror(errno)));
  }
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

}  // namespace hfta::engine
