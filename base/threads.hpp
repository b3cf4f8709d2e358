#pragma once
/// Threads that start together or not at all.

#include <fmt/format.h>

#include <system_error>
#include <thread>
#include <vector>

#include "base/error.hpp"

namespace hfta {

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
    throw Error(ErrorKind::kDevice,
                fmt::format("threads: could start {}, wanted {}: {}; a limit of this user's or container's processes "
                            "(ulimit -u, pids.max) may be the reason",
                            threads.size(), count, error.code().message()));
  }
  return threads;
}

}  // namespace hfta
