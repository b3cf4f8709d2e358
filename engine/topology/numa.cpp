#include "engine/topology/numa.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>

namespace hfta::engine {
namespace {

/// A mask of the kernel's, large enough for kMostCpus.
class CpuMask {
 public:
  CpuMask() : set_(CPU_ALLOC(kMostCpus)) { CPU_ZERO_S(bytes(), set_); }
  ~CpuMask() { CPU_FREE(set_); }
  CpuMask(const CpuMask&) = delete;
  CpuMask& operator=(const CpuMask&) = delete;

  [[nodiscard]] static std::size_t bytes() { return CPU_ALLOC_SIZE(kMostCpus); }
  [[nodiscard]] cpu_set_t* get() { return set_; }

 private:
  cpu_set_t* set_;
};

bool keep_to(const std::vector<int>& cpus) {
  CpuMask mask;
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), CpuMask::bytes(), mask.get());
  return ::sched_setaffinity(0, CpuMask::bytes(), mask.get()) == 0;
}

// The line that a file of the kernel has; "" if there is no such file.
std::string line_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

}  // namespace

std::vector<int> read_cpu_list(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<int> cpus;
  const char* place = text.data();
  const char* const end = text.data() + text.size();
  const auto number = [&]() -> int {
    int value = 0;
    const auto [rest, error] = std::from_chars(place, end, value);
    place = rest;
    return error == std::errc() && value >= 0 && value < kMostCpus ? value : -1;
  };
  while (place < end) {
    const int first = number();
    int last = first;
    if (place < end && *place == '-') ++place, last = number();
    if (first < 0 || last < first || (!cpus.empty() && first <= cpus.back())) return {};
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    if (place == end) return cpus;
    if (*place != ',') return {};
    ++place;
  }
  return {};  // an empty text, or nothing behind a comma
}

std::vector<NumaNode> numa_nodes(const std::filesystem::path& folder) {
  std::vector<NumaNode> nodes;
  for (const int number : read_cpu_list(line_of(folder / "has_cpu"))) {
    if (number >= kMostNumaNodes) break;
    NumaNode node{number, read_cpu_list(line_of(folder / fmt::format("node{}", number) / "cpulist"))};
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  return nodes;
}

std::vector<std::vector<int>> cpus_for(const std::vector<int>& threads, const std::vector<NumaNode>& nodes) {
  std::vector<std::vector<int>> cpus(threads.size());
  if (nodes.size() < 2) return cpus;
  std::vector<int> room;
  room.reserve(nodes.size());
  for (const NumaNode& node : nodes) room.push_back(static_cast<int>(node.cpus.size()));
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const auto emptiest = std::max_element(room.begin(), room.end());
    if (threads[i] == 0 || *emptiest < threads[i]) continue;
    *emptiest -= threads[i];
    cpus[i] = nodes[static_cast<std::size_t>(emptiest - room.begin())].cpus;
  }
  return cpus;
}

std::vector<int> allowed_cpus() {
  CpuMask mask;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, CpuMask::bytes(), mask.get()) != 0) return cpus;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(static_cast<std::size_t>(cpu), CpuMask::bytes(), mask.get())) cpus.push_back(cpu);
  }
  return cpus;
}

// CPUs that a container or taskset forbids stay forbidden.
KeepTo::KeepTo(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  std::vector<int> before = allowed_cpus(), wanted;
  std::set_intersection(before.begin(), before.end(), cpus.begin(), cpus.end(), std::back_inserter(wanted));
  if (!wanted.empty() && keep_to(wanted)) before_ = std::move(before);
}

KeepTo::~KeepTo() {
  if (!before_.empty()) (void)keep_to(before_);
}

}  // namespace hfta::engine
