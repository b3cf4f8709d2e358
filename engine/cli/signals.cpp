#include "engine/cli/signals.hpp"

#include <unistd.h>

#include <csignal>

namespace hfta::engine {
namespace {

// Globals, as a signal handler cannot reach anything else.
std::atomic<int> asked{0};
std::atomic<bool> insisted{false};  // SIGINT or SIGTERM has come once
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// The handler does nothing but what POSIX allows in one.
extern "C" void on_stop(int signal) {
  const bool insists = signal == SIGINT || signal == SIGTERM;
  if (insists && insisted.exchange(true)) _exit(128 + signal);
  int none = 0;
  if (!asked.compare_exchange_strong(none, signal)) return;
  static constexpr char kWords[] = "\nhfta-tune: stopping after this step; once more stops at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kWords, sizeof kWords - 1);
}

}  // namespace

const std::atomic<int>& catch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = on_stop;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaction(signal, &action, nullptr);
  struct sigaction before = {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
  return asked;
}

}  // namespace hfta::engine
