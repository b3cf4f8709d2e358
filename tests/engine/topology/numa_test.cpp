#include "engine/topology/numa.hpp"

#include <catch2/catch.hpp>
#include <fstream>
#include <thread>

#include "base/temporary_folder.hpp"

using namespace hfta;
using namespace hfta::engine;

TEST_CASE("lists of CPUs as the kernel writes them") {
  const std::pair<const char*, std::vector<int>> cases[] = {
      {"0", {0}},
      {"0-3", {0, 1, 2, 3}},
      {"0-1,4,6-7\n", {0, 1, 4, 6, 7}},
      {"", {}},
      {"\n", {}},
      {"a", {}},
      {"3-1", {}},
      {"1,0", {}},
      {"0,", {}},
      {"0--1", {}},
      {"0-4096", {}},
      {"0-99999999999", {}},
      {"0 1", {}},
      {"-1", {}},
      {"4095", {4095}},
  };
  for (const auto& [text, cpus] : cases) {
    CAPTURE(text);
    CHECK(read_cpu_list(text) == cpus);
  }
}

TEST_CASE("NUMA nodes are those that have CPUs") {
  const TemporaryFolder folder("hfta-numa");
  const auto write = [&](const std::string& file, const std::string& text) {
    std::filesystem::create_directories((folder.path() / file).parent_path());
    std::ofstream(folder.path() / file) << text << "\n";
  };
  CHECK(numa_nodes(folder.path()).empty());
  write("has_cpu", "0,2");
  write("node0/cpulist", "0-1");
  write("node1/cpulist", "");  // memory alone
  write("node2/cpulist", "2-3");
  const std::vector<NumaNode> nodes = numa_nodes(folder.path());
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].cpus == std::vector<int>{0, 1});
  CHECK(nodes[1].number == 2);
  CHECK(nodes[1].cpus == std::vector<int>{2, 3});
  CHECK(numa_nodes("/nowhere").empty());
}

TEST_CASE("CPU devices keep to a node that has room for their threads, where there are several nodes") {
  const std::vector<int> first = {0, 1, 2, 3}, second = {4, 5, 6, 7};
  const std::vector<NumaNode> one = {{0, first}}, two = {{0, first}, {1, second}};
  struct Case {
    std::vector<int> threads;
    std::vector<NumaNode> nodes;
    std::vector<std::vector<int>> wanted;
  };
  const std::vector<Case> cases = {
      {{4, 4}, one, {{}, {}}},
      {{4, 4}, {}, {{}, {}}},
      {{4, 4}, two, {first, second}},
      {{2, 2, 2, 2}, two, {first, second, first, second}},
      {{8}, two, {{}}},  // more threads than a node has CPUs
      {{3, 3, 2}, two, {first, second, {}}},
      {{0, 4, 0}, two, {{}, first, {}}},
      {{}, two, {}},
  };
  for (const Case& c : cases) CHECK(cpus_for(c.threads, c.nodes) == c.wanted);
}

TEST_CASE("a thread keeps to CPUs, hands that on to threads that it starts, and has what it had before") {
  const std::vector<int> before = allowed_cpus();
  REQUIRE_FALSE(before.empty());
  {
    const KeepTo kept({before.front(), kMostCpus - 1});
    CHECK(allowed_cpus() == std::vector<int>{before.front()});
    std::vector<int> of_child;
    std::thread([&] { of_child = allowed_cpus(); }).join();
    CHECK(of_child == std::vector<int>{before.front()});
  }
  CHECK(allowed_cpus() == before);
  {
    const KeepTo nothing({}), forbidden({kMostCpus - 1});
    CHECK(allowed_cpus() == before);
  }
  CHECK(allowed_cpus() == before);
}
