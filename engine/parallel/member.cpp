#include "engine/parallel/member.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hfta::engine {
namespace {

class MemberProcess final : public Member {
 public:
  MemberProcess(Channel channel, pid_t process) : Member(std::move(channel)), process_(process) {}
  // The process is killed: it holds nothing that would have to be cleaned up.
  ~MemberProcess() override {
    if (!ended_.empty()) return;
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) continue;
  }

  [[nodiscard]] std::string ended() override {
    for (int look = 0; ended_.empty() && look < 100; ++look) {
      int status = 0;
      if (::waitpid(process_, &status, WNOHANG) == process_) {
        ended_ = WIFSIGNALED(status) ? fmt::format("process {} was ended by signal {}", process_, WTERMSIG(status))
                                     : fmt::format("process {} ended with code {}", process_, WEXITSTATUS(status));
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    return ended_;
  }

 private:
  pid_t process_;
  std::string ended_;
};

// Descriptors that the process keeps under their numbers.
class KeptOpen {
 public:
  KeptOpen() { ::posix_spawn_file_actions_init(&actions_); }
  ~KeptOpen() { ::posix_spawn_file_actions_destroy(&actions_); }
  KeptOpen(const KeptOpen&) = delete;
  KeptOpen& operator=(const KeptOpen&) = delete;
  void add(const Descriptor& file) { ::posix_spawn_file_actions_adddup2(&actions_, file.get(), file.get()); }
  [[nodiscard]] const posix_spawn_file_actions_t* actions() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

// Blocks the signals that are not for the new process, as it takes a while until it ignores them.
class Undisturbed {
 public:
  Undisturbed() {
    sigset_t blocked;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    for (const int signal : kSignalsOfRank0) ::sigaddset(&blocked, signal);
    ::posix_spawnattr_init(&attributes_);
    ::posix_spawnattr_setsigmask(&attributes_, &blocked);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~Undisturbed() { ::posix_spawnattr_destroy(&attributes_); }
  Undisturbed(const Undisturbed&) = delete;
  Undisturbed& operator=(const Undisturbed&) = delete;
  [[nodiscard]] const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

std::unique_ptr<Member> start_member(const std::filesystem::path& program, int rank, Descriptor seat) {
  auto [own, its] = make_stream();
  KeptOpen open;
  open.add(its);
  open.add(seat);
  std::vector<std::string> words = {program.string(), "rank",
                                    "--rank",         std::to_string(rank),
                                    "--channel",      std::to_string(its.get()),
                                    "--seat",         std::to_string(seat.get())};
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const Undisturbed undisturbed;
  pid_t process = 0;
  const int refused =
      ::posix_spawn(&process, program.c_str(), open.actions(), undisturbed.attributes(), pointers.data(), environ);
  if (refused != 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("{}: cannot start a rank: {}", program.string(), std::strerror(refused)));
  }
  return std::make_unique<MemberProcess>(Channel(std::move(own)), process);
}

}  // namespace hfta::engine
