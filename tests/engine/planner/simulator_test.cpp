// Timelines worked out by hand. Devices do 1 TFLOP in a second, links carry 1 GB in a second, and nothing else takes
// time; memory is counted in GB.

#include "engine/planner/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/planner/plan.hpp"
#include "engine/planner/resources.hpp"

using namespace hfta::engine;
using namespace hfta::engine::planner;

namespace {

Cluster plain_cluster(const std::vector<int>& machines) {
  Cluster cluster;
  std::vector<Accelerator> names;
  for (const int machine : machines) {
    names.push_back({fmt::format("d{}", names.size()), 0});
    Device device;
    device.bandwidth = 1e12;
    device.memory = 1e6;
    device.machine = machine;
    cluster.devices.push_back(device);
  }
  cluster.links = Topology("plain", names);
  cluster.links.pcie = 1;
  cluster.ports = {1, 1};
  cluster.efficiency = 1;
  cluster.launch = cluster.latency = 0;
  return cluster;
}

Op op(const char* name, std::vector<int> inputs, double seconds, double weights, double outputs) {
  return {name, std::move(inputs), seconds * 1e12, weights * 1e9, outputs * 1e9};
}

Graph plain_graph(std::vector<Op> ops) {
  Graph graph;
  graph.bytes = 1;
  graph.ops = std::move(ops);
  return graph;
}

struct Ran {
  std::vector<std::string> lines;  // "0.0-1.0 forward a on 0"
  double seconds = 0;
  std::vector<double> peak;  // GB
};

Ran run(const Graph& graph, const Cluster& cluster, const Choices& choices) {
  const Problem problem(graph, cluster, groups_of(graph, graph.size()));
  const TaskGraph tasks = problem.tasks(choices);
  const Timeline timeline = simulate(tasks);
  Ran ran;
  std::vector<std::pair<double, std::string>> lines;
  for (std::size_t i = 0; i < tasks.tasks.size(); ++i) {
    const Task& task = tasks.tasks[i];
    const Span& span = timeline.spans[i];
    if (task.kind == TaskKind::kUpdate || (span.end - span.begin < 1e-3)) continue;
    const std::string place =
        task.from >= 0 ? fmt::format("{} to {}", task.from, task.device) : fmt::format("on {}", task.device);
    lines.emplace_back(std::round(span.begin * 10),
                       fmt::format("{:.1f}-{:.1f} {} {} {}", span.begin, span.end, to_text(task.kind),
                                   graph.ops[static_cast<std::size_t>(task.op)].name, place));
  }
  std::sort(lines.begin(), lines.end());
  for (const auto& [begin, line] : lines) ran.lines.push_back(line);
  ran.seconds = timeline.seconds;
  for (const double bytes : timeline.peak) ran.peak.push_back(std::round(bytes / 1e7) / 100);
  return ran;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("1: a chain on one device") {
  // Backward of b makes gradients of its input and its weights: twice the forward pass. a has neither.
  const Graph graph = plain_graph({op("a", {}, 1, 0, 3), op("b", {0}, 2, 0.5, 1)});
  const Ran ran = run(graph, plain_cluster({0, 0}), {0, 0});
  CHECK(ran.lines == Lines{"0.0-1.0 forward a on 0", "1.0-3.0 forward b on 0", "3.0-7.0 backward b on 0"});
  // Weights and one state, outputs of a and b, gradients of the weights and of a's output.
  CHECK(ran.peak == std::vector<double>{0.5 * 2 + 3 + 1 + 0.5 + 3, 0});
}

TEST_CASE("2: a chain over two devices sends outputs there and gradients back") {
  const Graph graph = plain_graph({op("a", {}, 1, 0.1, 1), op("b", {0}, 2, 0.1, 1)});
  const Ran ran = run(graph, plain_cluster({0, 0}), {0, 1});
  CHECK(ran.lines == Lines{"0.0-1.0 forward a on 0", "1.0-2.0 transfer a 0 to 1", "2.0-4.0 forward b on 1",
                           "4.0-8.0 backward b on 1", "8.0-9.0 transfer a 1 to 0", "9.0-10.0 backward a on 0"});
}

TEST_CASE("3: what leaves a device takes turns, the longer rest first; two devices work at once") {
  const Graph graph = plain_graph({op("a", {}, 1, 0, 1), op("b", {0}, 1, 0, 0), op("c", {0}, 3, 0, 0)});
  const Ran ran = run(graph, plain_cluster({0, 0, 0}), {0, 1, 2});
  CHECK(ran.lines == Lines{"0.0-1.0 forward a on 0", "1.0-2.0 transfer a 0 to 2", "2.0-3.0 transfer a 0 to 1",
                           "2.0-5.0 forward c on 2", "3.0-4.0 forward b on 1", "4.0-5.0 backward b on 1",
                           "5.0-8.0 backward c on 2"});
}

TEST_CASE("4: machines share a port each, whose directions are two") {
  // a and b go from machine 0 to 1 in turns; d comes back meanwhile.
  const Graph graph = plain_graph({op("a", {}, 1, 0, 2), op("b", {}, 1, 0, 2), op("d", {}, 1, 0, 2),
                                   op("e", {0}, 3, 0, 0), op("f", {1}, 1, 0, 0), op("g", {2}, 1, 0, 0)});
  const Ran ran = run(graph, plain_cluster({0, 0, 1, 1}), {0, 1, 2, 2, 3, 0});
  CHECK(ran.lines == Lines{"0.0-1.0 forward a on 0", "0.0-1.0 forward b on 1", "0.0-1.0 forward d on 2",
                           "1.0-3.0 transfer a 0 to 2", "1.0-3.0 transfer d 2 to 0", "3.0-4.0 forward g on 0",
                           "3.0-5.0 transfer b 1 to 3", "3.0-6.0 forward e on 2", "4.0-5.0 backward g on 0",
                           "5.0-6.0 forward f on 3", "6.0-7.0 backward f on 3", "6.0-9.0 backward e on 2"});
}

TEST_CASE("5: collectives take turns and run beside backward passes") {
  // Two samples, one on each device; an all-reduce of two carries each byte once. EV-AR is action 2 + 1.
  Graph graph = plain_graph({op("a", {}, 2, 1, 0), op("b", {0}, 1, 3, 0)});
  graph.samples = 2;
  const Ran ran = run(graph, plain_cluster({0, 0}), {3, 3});
  CHECK(ran.lines == Lines{"0.0-2.0 forward a on 0", "0.0-2.0 forward a on 1", "2.0-3.0 forward b on 0",
                           "2.0-3.0 forward b on 1", "3.0-5.0 backward b on 0", "3.0-5.0 backward b on 1",
                           "5.0-7.0 backward a on 0", "5.0-7.0 backward a on 1", "5.0-8.0 all-reduce b on 0",
                           "8.0-9.0 all-reduce a on 0"});
  CHECK(ran.seconds == Approx(9).epsilon(1e-4));
}

TEST_CASE("6: parameter servers are spread over devices, and both directions work at once") {
  // b has more weights and is first: device 0 serves it, device 1 serves a. States lie with the server only.
  Graph graph = plain_graph({op("a", {}, 1, 1, 0), op("b", {0}, 1, 2, 0)});
  graph.samples = 2;
  const Ran ran = run(graph, plain_cluster({0, 0}), {2, 2});
  CHECK(ran.lines == Lines{"0.0-1.0 forward a on 0", "0.0-1.0 forward a on 1", "1.0-2.0 forward b on 0",
                           "1.0-2.0 forward b on 1", "2.0-4.0 backward b on 0", "2.0-4.0 backward b on 1",
                           "4.0-5.0 backward a on 0", "4.0-5.0 backward a on 1", "4.0-6.0 push b 1 to 0",
                           "5.0-6.0 push a 0 to 1", "6.0-7.0 pull a 1 to 0", "6.0-8.0 pull b 0 to 1"});
  // 0: weights of both and b's states; own gradients of both and b's of the other; 1 likewise.
  CHECK(ran.peak == std::vector<double>{3 + 2 + 2 + 1 + 2, 3 + 1 + 2 + 1 + 1});
}

TEST_CASE("7: slots that are divided exchange nothing, and an even batch beside them moves half of each slot") {
  Graph graph = plain_graph({op("a", {}, 1, 1, 1), op("b", {0}, 1, 1, 0)});
  graph.slots = graph.samples = 2;
  const Cluster cluster = plain_cluster({0, 0});
  const Ran apart = run(graph, cluster, {6, 6});
  CHECK(apart.lines == Lines{"0.0-2.0 forward a on 0", "0.0-2.0 forward a on 1", "2.0-4.0 forward b on 0",
                             "2.0-4.0 forward b on 1", "4.0-8.0 backward b on 0", "4.0-8.0 backward b on 1",
                             "8.0-10.0 backward a on 0", "8.0-10.0 backward a on 1"});
  // Slot 0's second sample goes to device 1, slot 1's first one to device 0; the gradients of both slots are reduced.
  const Ran mixed = run(graph, cluster, {6, 3});
  CHECK(mixed.lines == Lines{"0.0-2.0 forward a on 0", "0.0-2.0 forward a on 1", "2.0-3.0 transfer a 0 to 1",
                             "2.0-3.0 transfer a 1 to 0", "3.0-5.0 forward b on 0", "3.0-5.0 forward b on 1",
                             "5.0-9.0 backward b on 0", "5.0-9.0 backward b on 1", "9.0-10.0 transfer a 0 to 1",
                             "9.0-10.0 transfer a 1 to 0", "10.0-12.0 all-reduce b on 0", "10.0-12.0 backward a on 0",
                             "10.0-12.0 backward a on 1"});
}

TEST_CASE("8: what several read is sent once and freed after the last of them") {
  // On device 1: a's copy (2) for b and c, until both backward passes are over; the gradients that they make (2 each)
  // go back as one sum. The peak is in b's backward: the copy, b's output, the gradients of c and of b.
  const Graph graph = plain_graph({op("a", {}, 1, 0.5, 2), op("b", {0}, 1, 0, 1), op("c", {0}, 3, 0, 1)});
  const Ran ran = run(graph, plain_cluster({0, 0}), {0, 1, 1});
  CHECK(ran.lines == Lines{"0.0-1.0 forward a on 0", "1.0-3.0 transfer a 0 to 1", "3.0-6.0 forward c on 1",
                           "6.0-9.0 backward c on 1", "9.0-10.0 forward b on 1", "10.0-11.0 backward b on 1",
                           "11.0-13.0 transfer a 1 to 0", "13.0-14.0 backward a on 0"});
  CHECK(ran.peak[1] == 2 + 1 + 2 + 2);
}

TEST_CASE("an all-reduce is the faster of a ring and of rings of machines") {
  Cluster cluster = plain_cluster({0, 0, 1, 1});
  const Collective flat = all_reduce(cluster, {0, 1, 2, 3}, 1e9);
  CHECK(flat.seconds == Approx(2.0 * 3 / 4));  // every path carries 1 GB/s
  cluster.links.nvlink = 100;
  cluster.links.connect(0, 1, {PathKind::kNvlink, 1});
  cluster.links.connect(2, 3, {PathKind::kNvlink, 1});
  // 0.01 s within machines, 1 s between them, 0.01 s back: less than 1.5.
  CHECK(all_reduce(cluster, {0, 1, 2, 3}, 1e9).seconds == Approx(0.01 + 1 + 0.01));
  CHECK(all_reduce(cluster, {0, 1}, 1e9).seconds == Approx(0.01));
  CHECK((all_reduce(cluster, {0, 1}, 1e9).holds & all_reduce(cluster, {2, 3}, 1e9).holds).count() == 1);  // the channel
}
