// hfta-tune plan --cluster and simulate --planner, from outside.

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program.hpp"

using namespace hfta::testing;
using nlohmann::json;

namespace {

Finished run_bare(const Workplace& place, std::vector<std::string> words) {
  Program::Options options = place.options();
  options.program = HFTA_TUNE_BARE;
  return Program(options, std::move(words)).wait();
}

constexpr const char* kCluster =
    "name: two boxes\ndevices: [a, b, c]\nmachines: [0, 0, 1]\ntflops: [14, 14, 9]\nbandwidth: 500\nmemory: 8\n";
constexpr const char* kGraph =
    "name: tiny\nsamples: 64\nslots: 2\nops:\n- {name: conv, flops: 1e9, weights: 1e4, outputs: 1e5}\n"
    "- {name: linear, flops: 1e8, weights: 5e7, outputs: 1000}\n";

}  // namespace

TEST_CASE("plan --cluster writes a plan and its trace, the same for the same seed") {
  const Workplace place;
  place.write("c.yaml", kCluster);
  place.write("g.yaml", kGraph);
  const std::vector<std::string> words = {"plan", "--cluster", "c.yaml",    "--graph", "g.yaml",    "--seed",
                                          "3",    "--output",  "plan.json", "--trace", "trace.json"};
  const Finished first = run_bare(place, words);
  INFO(first.err);
  REQUIRE(first.code == 0);
  CHECK_THAT(first.out, Catch::Contains("tiny: 2 ops in 2 groups, 2 slots x 64 samples; on two boxes") &&
                            Catch::Contains("simulated") && Catch::Contains("EV-AR") && Catch::Contains("planned"));
  const json plan = json::parse(place.read("plan.json"));
  CHECK(plan["version"] == 1);
  CHECK(plan["simulated"] == true);
  CHECK(plan["feasible"] == true);
  REQUIRE(plan["ops"].size() == 2);
  for (const json& baseline : plan["baselines"]) CHECK(plan["step_s"] <= baseline["step_s"]);
  double shared = 0;
  for (const json& part : plan["ops"][0]["parts"])
    shared += part["slots"].get<double>() * part["samples"].get<double>();
  CHECK(shared == 2 * 64);

  // On a device nothing overlaps, and the last event ends the step.
  std::map<int, double> ends;
  double last = 0;
  const json trace = json::parse(place.read("trace.json"));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], end = begin + event["dur"].get<double>();
    CHECK(begin >= ends[event["tid"]] - 1e-6);
    ends[event["tid"]] = end;
    last = std::max(last, end);
  }
  CHECK(last == Approx(plan["step_s"].get<double>() * 1e6));
  CHECK(run_bare(place, words).out == first.out);
  CHECK(json::parse(
            run_bare(place, {"plan", "--cluster", "c.yaml", "--graph", "g.yaml", "--seed", "3", "--format", "json"})
                .out) == plan);
}

TEST_CASE("what plan --cluster and simulate --planner cannot use is one line, exit 2") {
  const Workplace place;
  place.write("c.yaml", kCluster);
  place.write("g.yaml", kGraph);
  place.write("bad.yaml", "devices: 2\n");
  struct Case {
    std::vector<std::string> words;
    const char* says;
  };
  const Case cases[] = {
      {{"plan", "--cluster", "c.yaml"}, "found --cluster without --graph"},
      {{"plan", "--cluster", "c", "--graph", "g.yaml"}, "--cluster: found 'c', wanted a .yaml file"},
      {{"plan", "--cluster", "bad.yaml", "--graph", "g.yaml"}, "bad.yaml:1: tflops: found a map, wanted TFLOPS"},
      {{"plan", "--cluster", "c.yaml", "--graph", "absent.yaml"}, "absent.yaml: cannot be read"},
      {{"plan", "--cluster", "c.yaml", "--graph", "alexnet"}, "--graph: found 'alexnet', wanted"},
      {{"plan", "--cluster", "c.yaml", "--graph", "g.yaml", "--groups", "0"}, "--groups: found 0, wanted 1 to"},
      {{"plan", "--cluster", "c.yaml", "--graph", "g.yaml", "--simulations", "0"}, "--simulations: found 0"},
      {{"plan", "s.yaml", "--cluster", "c.yaml"}, "found a config beside --cluster"},
      {{"simulate", "s.yaml", "--planner"}, "found a config beside --planner"},
      {{"simulate", "--planner", "--simulations", "0"}, "--simulations: found 0, wanted 1 to"}};
  for (const Case& one : cases) {
    const Finished finished = run_bare(place, one.words);
    CAPTURE(one.says, finished.err);
    CHECK(finished.code == 2);
    CHECK_THAT(finished.err, Catch::Contains(one.says));
  }
}
