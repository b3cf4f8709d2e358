// Clusters and graphs as files, and files that are neither.

#include "engine/planner/readers.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

using namespace hfta;
using namespace hfta::engine::planner;

namespace {

template <typename Call>
std::string said(const Call& call) {
  try {
    static_cast<void>(call());
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "nothing";
}

const std::string kCluster = "devices: [a, b]\ntflops: 10\nbandwidth: 100\nmemory: 8\n";

}  // namespace

TEST_CASE("a cluster's file says what each device is and how machines are connected") {
  const Cluster cluster = read_cluster(
      "name: two boxes\ndevices: [a, b, c]\nnvlink: 25\npcie: 12\nlinks: [[0, 1, NV2]]\nmachines: [0, 0, 1]\n"
      "ports: [10, 5]\ntflops: [14, 14, 9.3]\nbandwidth: 900\nmemory: [16, 16, 12]\npower: [2, 2, 1]\nefficiency: 0.4\n"
      "launch: 5\nlatency: 20\n",
      "c.yaml");
  REQUIRE(cluster.size() == 3);
  CHECK(cluster.links.name() == "two boxes");
  CHECK(cluster.device(2).tflops == 9.3);
  CHECK(cluster.device(2).bandwidth == 900);
  CHECK(cluster.device(2).memory == 12);
  CHECK(cluster.device(2).machine == 1);
  CHECK(cluster.device(1).power == 2);
  CHECK(cluster.efficiency == 0.4);
  CHECK(cluster.launch == Approx(5e-6));
  CHECK(cluster.latency == Approx(20e-6));
  CHECK(cluster.rate(0, 1) == 50e9);  // two NVLinks
  CHECK(cluster.rate(0, 2) == 5e9);   // the slower port
  const Cluster plain = read_cluster(kCluster, "c.yaml");
  CHECK(plain.device(1).power == 10);  // tflops
  CHECK(plain.rate(0, 1) == 10e9);     // PCIe
}

TEST_CASE("a graph's ops read the one before them unless they say otherwise") {
  const Graph graph = read_graph(
      "name: net\nsamples: 64\nslots: 3\nstates: 2\nops:\n- {name: a, flops: 1e9, weights: 100, outputs: 10}\n- {name: "
      "b}\n"
      "- {name: c, inputs: [a, b]}\n- {name: d, inputs: []}\n",
      "g.yaml");
  REQUIRE(graph.size() == 4);
  CHECK(graph.name == "net");
  CHECK(graph.samples == 64);
  CHECK(graph.slots == 3);
  CHECK(graph.states == 2);
  CHECK(graph.bytes == 4);
  CHECK(graph.ops[0].flops == 1e9);
  CHECK(graph.ops[0].inputs.empty());
  CHECK(graph.ops[1].inputs == std::vector<int>{0});
  CHECK(graph.ops[2].inputs == std::vector<int>{0, 1});
  CHECK(graph.ops[3].inputs.empty());
  CHECK(read_graph(R"({"samples": 1, "ops": [{"name": "a", "weights": 5}]})", "g.json").ops[0].weights == 5);
}

TEST_CASE("a file that is no cluster is refused with its line") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[1]", "wanted devices: ..., tflops: ..."},
      {"devices: 2\n", "c:1: tflops: found a map, wanted TFLOPS"},
      {kCluster + "watts: 3\n", "c:5: watts: unknown key"},
      {kCluster + "machines: [0]\n", "c:5: machines: found a list, wanted a list of 2, one for each device"},
      {kCluster + "machines: [0, 2]\n", "c:5: machines: found 2, wanted an integer from 0 to 1"},
      {kCluster + "machines: [0, 1]\nports: [1]\n",
       "c:6: ports: found a list, wanted GB/s: one number, or a list of 2"},
      {kCluster + "efficiency: 1.5\n", "c:5: efficiency: found 1.5, wanted a part, 1e-06 to 1"},
      {kCluster + "efficiency: .nan\n", "c:5: efficiency: found .nan, wanted"},
      {kCluster + "latency: -1\n", "c:5: latency: found -1, wanted microseconds, 0 to 1e+06"},
      {"devices: 2\ntflops: 0\nbandwidth: 1\nmemory: 1\n", "c:2: tflops: found 0, wanted TFLOPS"},
      {"devices: 17\ntflops: 1\nbandwidth: 1\nmemory: 1\n", "c:1: devices: found 17"}};
  for (const auto& [text, message] : cases) {
    const std::string file = text;
    CHECK_THAT(said([&] { return read_cluster(file, "c"); }), Catch::Contains(message));
  }
}

TEST_CASE("a file that is no graph is refused with its line") {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"samples: 1\n", "g:1: ops: found a map, wanted a list of 1 to 2000 ops"},
      {"samples: 1\nops: []\n", "g:2: ops: found an empty list, wanted a list of 1 to 2000 ops"},
      {"ops: [{name: a}]\n", "g:1: samples: found a map, wanted the number of samples"},
      {"samples: 0\nops: [{name: a}]\n", "g:1: samples: found 0, wanted an integer from 1"},
      {"samples: 1\nslots: 5000\nops: [{name: a}]\n", "g:2: slots: found 5000"},
      {"samples: 1\nops: [{flops: 1}]\n", "g:2: ops.name: found a map, wanted a name"},
      {"samples: 1\nops: [{name: a}, {name: a}]\n", "ops.name: found 'a', wanted each name once"},
      {"samples: 1\nops: [{name: a, inputs: [b]}]\n", "ops.inputs: found 'b', wanted the name of an op"},
      {"samples: 1\nops: [{name: a, inputs: [a]}]\n", "ops.inputs: found 'a', wanted the name of an op"},
      {"samples: 1\nops: [{name: a, flops: 1e16}]\n", "ops.flops: found 1e16, wanted a number, 0 to"},
      {"samples: 1\nops: [{name: a, weights: .inf}]\n", "ops.weights: found .inf, wanted a number"},
      {"samples: 1\nops: [{name: a, flop: 1}]\n", "flop: unknown key; did you mean 'flops'?"},
      {"samples: 1\nops: [3]\n", "g:2: ops: found 3, wanted {name: ..."}};
  for (const auto& [text, message] : cases) {
    const std::string file = text;
    CHECK_THAT(said([&] { return read_graph(file, "g"); }), Catch::Contains(message));
  }
}

TEST_CASE("clusters and nets go by name, too") {
  CHECK(cluster_named("heterog-8").size() == 8);
  CHECK_THAT(said([] { return cluster_named("heterog"); }), Catch::Contains("wanted a .yaml file, or heterog-8"));
  CHECK(graph_named("vgg19").samples == 192);
  CHECK(graph_named("vgg19:7").samples == 7);
  CHECK_THAT(said([] { return graph_named("vgg20"); }), Catch::Contains("or a net: vgg19, resnet200"));
  for (const char* const word : {"vgg19:", "vgg19:0", "vgg19:1e3", "vgg19:99999999"}) {
    CHECK_THAT(said([&] { return graph_named(word); }), Catch::Contains("wanted vgg19:SAMPLES"));
  }
  CHECK_THAT(said([] { return graph_named("/nowhere/at/all.yaml"); }), Catch::Contains("cannot be read"));
}
