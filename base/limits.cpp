#include "base/limits.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

namespace hfta {
namespace {

namespace fs = std::filesystem;

// Calls `look` with the folders of the process's control groups, from its own up to the root: those of the one tree of
// version 2, and those of version 1 that have the controller. What is above may be hidden, as in a container.
void for_each_group(const fs::path& root, const std::string& controller,
                    const std::function<void(const fs::path& folder, bool unified)>& look) {
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/path", "4:cpu,cpuacct:/path"
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find("," + controller + ",") == controllers.npos) continue;
    const fs::path tree = root / "sys/fs/cgroup" / (unified ? "" : controller);
    for (fs::path group = line.substr(second + 1); group.has_relative_path(); group = group.parent_path()) {
      look(tree / group.relative_path(), unified);
    }
    look(tree, unified);
  }
}

// 0 where the file has no number ("max", "-1") or is not there.
double number_in(const fs::path& file) {
  double number = 0;
  std::ifstream(file) >> number;
  return std::max(number, 0.0);
}

// Cores that a group's share of CPU time keeps busy; 0: it has no limit.
double cores_of(const fs::path& folder, bool unified) {
  double quota = 0, period = 0;
  if (unified) {
    std::ifstream(folder / "cpu.max") >> quota >> period;
  } else {
    quota = number_in(folder / "cpu.cfs_quota_us");
    period = number_in(folder / "cpu.cfs_period_us");
  }
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

std::uint64_t usable_memory(const fs::path& root) {
  std::uint64_t most =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGE_SIZE));
  for_each_group(root, "memory", [&](const fs::path& folder, bool unified) {
    std::uint64_t limit = 0;  // "max" is no number
    if (std::ifstream(folder / (unified ? "memory.max" : "memory.limit_in_bytes")) >> limit) {
      most = std::min(most, limit);
    }
  });
  for (const auto resource : {RLIMIT_AS, RLIMIT_DATA}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
      most = std::min<std::uint64_t>(most, limit.rlim_cur);
    }
  }
  return most;
}

int usable_cores(const fs::path& root) {
  double most = std::max(1U, std::thread::hardware_concurrency());  // heeds the process's mask
  for_each_group(root, "cpu", [&](const fs::path& folder, bool unified) {
    if (const double cores = cores_of(folder, unified); cores > 0) most = std::min(most, cores);
  });
  return static_cast<int>(std::ceil(most));
}

}  // namespace hfta
