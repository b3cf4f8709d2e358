// The nets of HeteroG's evaluation: their sizes as published, and what the planner makes of them.

#include "engine/planner/nets.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "engine/planner/search.hpp"

using namespace hfta::engine;
using namespace hfta::engine::planner;

TEST_CASE("nets have as many weights as published, and in all as much arithmetic") {
  // Multiplications and additions of an image's forward pass, 1e9 of each, as the papers have them.
  const std::map<std::string, double> billions = {
      {"vgg19", 19.6}, {"resnet200", 15.0}, {"inception-v3", 5.7}, {"mobilenet-v2", 0.30}, {"nasnet", 0.564}};
  for (const Net& net : nets()) {
    const Graph graph = net.make();
    double weights = 0, flops = 0;
    for (const Op& op : graph.ops) {
      weights += op.weights;
      flops += op.flops;
      for (const int input : op.inputs) CHECK(input < static_cast<int>(&op - graph.ops.data()));
    }
    CAPTURE(net.name, weights, flops);
    CHECK(graph.size() <= kMostOps);
    if (net.million_weights > 0) CHECK(weights / 1e6 == Approx(net.million_weights).epsilon(0.03));
    if (billions.contains(net.name)) CHECK(flops / 2e9 == Approx(billions.at(net.name)).epsilon(0.06));
  }
}
