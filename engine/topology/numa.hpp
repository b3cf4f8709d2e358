#pragma once
/// NUMA nodes of this machine, as Linux shows them.

#include <filesystem>
#include <string_view>
#include <vector>

namespace hfta::engine {

/// A list of CPUs as the kernel writes it, "0-3,8,10-11", ascending; empty if it is anything else, or names a CPU from
/// kMostCpus on.
[[nodiscard]] std::vector<int> read_cpu_list(std::string_view text);
inline constexpr int kMostCpus = 4096;
/// All numbers of NUMA nodes are smaller than this.
inline constexpr int kMostNumaNodes = 1024;

struct NumaNode {
  int number = 0;
  std::vector<int> cpus;  ///< Logical ones; ascending.
};

/// The nodes that have CPUs, by number. Empty where `folder` does not tell: no Linux, a container without /sys.
[[nodiscard]] std::vector<NumaNode> numa_nodes(const std::filesystem::path& folder = "/sys/devices/system/node");

/// The CPUs that each device keeps to, given its number of CPU threads: those of one node, which has room for its
/// threads beside those of the devices before it, the emptiest first. Empty: it may run anywhere, because it has no
/// threads of its own (0), because the machine has one node, or because no node has room.
[[nodiscard]] std::vector<std::vector<int>> cpus_for(const std::vector<int>& threads,
                                                     const std::vector<NumaNode>& nodes);

/// While it lives, the thread that made it runs on those CPUs only, and so do threads that it starts; memory that they
/// touch first lies on their node. Does nothing for no CPUs, or where the system refuses.
class KeepTo {
 public:
  explicit KeepTo(const std::vector<int>& cpus);
  ~KeepTo();
  KeepTo(const KeepTo&) = delete;
  KeepTo& operator=(const KeepTo&) = delete;

 private:
  std::vector<int> before_;  ///< Empty: nothing was changed.
};

/// The CPUs that this thread may run on.
[[nodiscard]] std::vector<int> allowed_cpus();

}  // namespace hfta::engine
