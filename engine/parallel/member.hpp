#pragma once
/// The ranks of a device behind the first: who they are, and how they are started and ended.

#include <array>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>

#include "base/folder.hpp"
#include "engine/parallel/channel.hpp"

namespace hfta::engine {

/// Signals that go to all processes of a terminal or a service, and that rank 0 alone answers.
inline constexpr std::array kSignalsOfRank0 = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

/// A rank that serves (engine/parallel/serve.hpp) at the other end of its channel. It ends with this.
class Member {
 public:
  explicit Member(Channel channel) : channel_(std::move(channel)) {}
  virtual ~Member() = default;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  [[nodiscard]] Channel& channel() { return channel_; }
  /// How it has ended, "process 4711 was ended by signal 9"; "" if it has not. Waits a second for one that is ending.
  [[nodiscard]] virtual std::string ended() = 0;

 private:
  Channel channel_;
};

/// Starts `program rank --rank R --channel C --seat S`, where C and S are descriptors that it is given: the other end
/// of Member::channel and the rank's seat in its group (fusion/collectives/shared_memory.hpp). The process is killed
/// with the Member. kSignalsOfRank0 are blocked in it from its first instruction on. Throws Error{kDevice} where the
/// system refuses.
[[nodiscard]] std::unique_ptr<Member> start_member(const std::filesystem::path& program, int rank, Descriptor seat);

}  // namespace hfta::engine
