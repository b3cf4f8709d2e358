#include "engine/cli/signals.hpp"

#include <unistd.h>

#include <csignal>

namespace hfta::engine {
namespace {

std::atomic<int> asked{0};  // a handler has no other way to reach anything
static_assert(std::atomic<int>::is_always_lock_free);

// Nothing but what POSIX allows in a handler.
extern "C" void on_stop(int signal) {
  if (asked.exchange(signal) != 0) _exit(128 + signal);
  static constexpr char kWords[] = "\nhfta-tune: stopping after this step; once more stops at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords, sizeof kWords - 1);
}

}  // namespace

const std::atomic<int>& catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return asked;
}

}  // namespace hfta::engine
