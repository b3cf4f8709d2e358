#pragma once
/// Starting threads, with an error that says what to do where the system has none left.

#include <fmt/format.h>

#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace hfta {

[[nodiscard]] inline Error no_thread_left(std::size_t started, std::size_t wanted, const std::system_error& error) {
  return {ErrorKind::kDevice,
          fmt::format("threads: could start {}, wanted {}: {}; a limit of this user's or container's processes or "
                      "memory (ulimit -u, ulimit -v, pids.max) may be the reason",
                      started, wanted, error.code().message())};
}

/// A thread that runs serve(). Throws Error{kDevice} where the system has none left.
template <typename Serve>
[[nodiscard]] std::thread start_thread(Serve serve) try {
  return std::thread(std::move(serve));
} catch (const std::system_error& error) {
  throw no_thread_left(0, 1, error);
}

/// `count` threads, of which each runs serve(i), i from 0 on. Where the system has no thread left, calls stop(), which
/// must make every serve() return, joins those that have started, and throws Error{kDevice}.
template <typename Serve, typename Stop>
[[nodiscard]] std::vector<std::thread> start_threads(int count, const Serve& serve, const Stop& stop) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count > 0 ? count : 0));
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([serve, i] { serve(i); });
  } catch (const std::system_error& error) {
    stop();
    for (std::thread& thread : threads) thread.join();
    throw no_thread_left(threads.size(), static_cast<std::size_t>(count), error);
  }
  return threads;
}

}  // namespace hfta
