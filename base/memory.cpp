#include "base/memory.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace hfta {
namespace {

// Control groups from the process's own up to the root; what is above may be hidden, as in a container.
std::uint64_t group_limit(std::uint64_t most) {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const bool unified = line.starts_with("0::");
    const std::size_t first = line.find(':');
    if (!unified && line.substr(first + 1, line.rfind(':') - first - 1) != "memory") continue;
    const std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string path = unified ? line.substr(3) : line.substr(line.rfind(':') + 1);
    for (;; path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'))) {
      std::uint64_t limit = 0;  // "max" is no number
      const char* const file = unified ? "/memory.max" : "/memory.limit_in_bytes";
      if (std::ifstream(root + (path == "/" ? "" : path) + file) >> limit) most = std::min(most, limit);
      if (path.empty()) break;
    }
  }
  return most;
}

}  // namespace

std::uint64_t usable_memory() {
  const auto machine =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  std::uint64_t most = group_limit(machine);
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      most = std::min<std::uint64_t>(most, limit.rlim_cur);
    }
  }
  return most;
}

}  // namespace hfta
