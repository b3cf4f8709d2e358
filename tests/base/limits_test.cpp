// What control groups leave a process, of either version.
#include "base/limits.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"

namespace hfta {
namespace {

namespace fs = std::filesystem;

struct Case {
  const char* what;
  std::string groups;                                      // proc/self/cgroup
  std::vector<std::pair<std::string, std::string>> files;  // below sys/fs/cgroup
  std::uint64_t memory;                                    // 0: the machine's
  int cores;                                               // 0: the machine's
};

void write(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace

TEST_CASE("a process uses no more than the least of its control groups allows") {
  const std::vector<Case> cases = {
      {"no groups", "", {}, 0, 0},
      {"no limits", "0::/a/b\n", {{"a/b/memory.max", "max\n"}, {"a/b/cpu.max", "max 100000\n"}}, 0, 0},
      {"its own", "0::/a/b\n", {{"a/b/memory.max", "1048576\n"}, {"a/b/cpu.max", "100000 100000\n"}}, 1 << 20, 1},
      {"one above", "0::/a/b\n", {{"a/memory.max", "4096\n"}, {"a/b/memory.max", "8192\n"}}, 4096, 0},
      {"a container's root", "0::/\n", {{"memory.max", "65536\n"}, {"cpu.max", "50000 100000\n"}}, 65536, 1},
      {"hidden folders", "0::/../../x\n", {{"memory.max", "65536\n"}}, 65536, 0},
      {"version 1",
       "5:cpu,cpuacct:/d\n4:memory:/d\n",
       {{"memory/d/memory.limit_in_bytes", "12288\n"},
        {"cpu/d/cpu.cfs_quota_us", "10000\n"},
        {"cpu/d/cpu.cfs_period_us", "100000\n"}},
       12288,
       1},
      {"version 1 without limits",
       "5:cpu,cpuacct:/d\n4:memory:/d\n",
       {{"memory/d/memory.limit_in_bytes", "9223372036854771712\n"},
        {"cpu/d/cpu.cfs_quota_us", "-1\n"},
        {"cpu/d/cpu.cfs_period_us", "100000\n"}},
       0,
       0},
      {"other controllers", "3:cpuset:/d\n", {{"cpu/d/cpu.cfs_quota_us", "10000\n"}, {"memory.max", "1\n"}}, 0, 0},
      {"no such text", "nonsense\n:\n0:\n", {{"memory.max", "1\n"}}, 0, 0},
  };
  for (const Case& c : cases) {
    INFO(c.what);
    const TemporaryFolder empty("empty"), root("root");
    write(root.path() / "proc/self/cgroup", c.groups);
    for (const auto& [file, text] : c.files) write(root.path() / "sys/fs/cgroup" / file, text);
    CHECK(usable_memory(root.path()) == (c.memory > 0 ? c.memory : usable_memory(empty.path())));
    CHECK(usable_cores(root.path()) == (c.cores > 0 ? c.cores : usable_cores(empty.path())));
  }
  CHECK(usable_cores() >= 1);
  CHECK(usable_memory() > 0);
}

TEST_CASE("a share of CPU time that is no whole number of cores keeps one more busy") {
  const TemporaryFolder empty("empty"), root("root");
  const int machine = usable_cores(empty.path());
  write(root.path() / "proc/self/cgroup", "0::/a\n");
  for (const auto& [quota, cores] : std::vector<std::pair<int, int>>{{1, 1}, {100001, 2}, {150000, 2}, {250000, 3}}) {
    write(root.path() / "sys/fs/cgroup/a/cpu.max", std::to_string(quota) + " 100000\n");
    CHECK(usable_cores(root.path()) == std::min(cores, machine));
  }
}

}  // namespace hfta
