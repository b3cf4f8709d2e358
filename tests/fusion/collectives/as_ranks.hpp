#pragma once
/// Threads as the ranks of a group.

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "fusion/collectives/shared_memory.hpp"

namespace hfta::fusion::testing {

/// For `work` of as_ranks.
inline void want(bool right, const std::string& what) {
  if (!right) throw Error(ErrorKind::kInternal, "wanted " + what);
}

/// work(rank's end) for each rank, in a thread of its own that leaves the group at its end. Returns what each threw; ""
/// for nothing. Catch2's assertions are for one thread: `work` throws where it finds something wrong.
inline std::vector<std::string> as_ranks(std::vector<std::unique_ptr<Collectives>> group,
                                         const std::function<void(Collectives&)>& work) {
  std::vector<std::string> thrown(group.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < group.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        work(*group[r]);
      } catch (const std::exception& error) {
        thrown[r] = error.what();
      }
      group[r].reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return thrown;
}

inline std::vector<std::string> as_ranks(int ranks, const std::function<void(Collectives&)>& work) {
  return as_ranks(ranks_in_process(ranks, 1024), work);
}

}  // namespace hfta::fusion::testing
