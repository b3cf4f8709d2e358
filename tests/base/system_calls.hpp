#pragma once
/// The test's own system calls in place of libc's, so that each can be made to fail.

#include <cstddef>
#include <string>
#include <vector>

namespace hfta::testing {

/// While it lives, what this thread's file calls (open, openat, read, write, fsync, renameat, mkdirat, fdopendir's) do.
struct CallFaults {
  CallFaults();
  ~CallFaults();
  CallFaults(const CallFaults&) = delete;
  CallFaults& operator=(const CallFaults&) = delete;

  int fail_at = 0;                 ///< The call that fails, from 1; 0: none.
  int error = 0;                   ///< With this errno.
  bool for_good = false;           ///< And every later one of the same name.
  bool interrupt = false;          ///< Every other call is interrupted: EINTR.
  std::size_t most = 0;            ///< Bytes that one read or write moves at most; 0: all.
  std::vector<std::string> calls;  ///< Those that were made, by name.
  std::string failed;              ///< The name of the one that failed.
};

}  // namespace hfta::testing
