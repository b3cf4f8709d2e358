// Recurrent layers: outputs against the equations of torch.nn written out element by element, gradients against
// differences.
#include <catch2/catch.hpp>
#include <cmath>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

constexpr std::int64_t kSteps = 3, kSamples = 2, kFeatures = 5, kHidden = 4;

struct Case {
  std::string op;
  std::int64_t gates, layers = 1;
  bool biases = true, bidirectional = false, batch_first = false;
};

/// x, then the states, then each direction's weights.
SmallGraph layer_of(const Case& c, bool last_state = false) {
  SmallGraph small;
  const std::int64_t sides = c.bidirectional ? 2 : 1;
  const ValueId x =
      small.weight("x", c.batch_first ? Shape{kSamples, kSteps, kFeatures} : Shape{kSteps, kSamples, kFeatures});
  const Shape state = {c.layers * sides, kSamples, kHidden};
  const bool lstm = c.gates == 4;
  std::vector<ValueId> states = {small.weight("h", state)};
  if (lstm) states.push_back(small.weight("c", state));
  std::vector<ValueId> params;
  for (std::int64_t i = 0; i < c.layers * sides; ++i) {
    const std::int64_t in = i < sides ? kFeatures : sides * kHidden;
    params.push_back(small.weight("w_in", {c.gates * kHidden, in}));
    params.push_back(small.weight("w_h", {c.gates * kHidden, kHidden}));
    for (int b = 0; c.biases && b < 2; ++b) params.push_back(small.weight("b", {c.gates * kHidden}));
  }
  std::vector<Arg> args = {x};
  args.emplace_back(lstm ? Arg(states) : Arg(states[0]));
  for (Arg arg :
       {Arg(params), Arg(c.biases), Arg(c.layers), Arg(0.0), Arg(true), Arg(c.bidirectional), Arg(c.batch_first)}) {
    args.push_back(std::move(arg));
  }
  const ValueId y = small.call(c.op, args, lstm ? 3 : 2);
  if (!last_state) {
    small.graph.nodes.back().outputs.resize(1);
    return small;
  }
  // All outputs take part in the loss.
  const ValueId h = small.output(1), cell = lstm ? small.output(2) : h;
  const ValueId mean = small.call("aten::mean.dim", {h, std::vector<std::int64_t>{0, 1, 2}, false, std::monostate{}});
  const ValueId cells = small.call(
      "aten::mul.Tensor",
      {mean, small.call("aten::mean.dim", {cell, std::vector<std::int64_t>{0, 1, 2}, false, std::monostate{}})});
  small.call("aten::add.Tensor", {y, cells, std::int64_t{1}});
  return small;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// What one layer in one direction gives after each step, of kSamples rows, by the equations of torch.nn's pages.
std::vector<double> by_hand(const Case& c, const SmallGraph& small) {
  const bool lstm = c.gates == 4;
  const std::vector<double>&x = small.weights[0], &h0 = small.weights[1];
  const std::size_t first = lstm ? 3 : 2;
  const std::vector<double>&wi = small.weights[first], &wh = small.weights[first + 1], &bi = small.weights[first + 2],
        &bh = small.weights[first + 3];
  std::vector<double> y;
  std::vector<double> h = h0, cells = lstm ? small.weights[2] : h0;
  for (std::int64_t t = 0; t < kSteps; ++t) {
    const std::vector<double> before = h;
    for (std::int64_t n = 0; n < kSamples; ++n) {
      const auto in = [&](std::int64_t g, std::int64_t j) {
        double sum = bi[static_cast<std::size_t>(g * kHidden + j)];
        for (std::int64_t k = 0; k < kFeatures; ++k) {
          sum += wi[static_cast<std::size_t>((g * kHidden + j) * kFeatures + k)] *
                 x[static_cast<std::size_t>((t * kSamples + n) * kFeatures + k)];
        }
        return sum;
      };
      const auto hidden = [&](std::int64_t g, std::int64_t j) {
        double sum = bh[static_cast<std::size_t>(g * kHidden + j)];
        for (std::int64_t k = 0; k < kHidden; ++k) {
          sum += wh[static_cast<std::size_t>((g * kHidden + j) * kHidden + k)] *
                 before[static_cast<std::size_t>(n * kHidden + k)];
        }
        return sum;
      };
      for (std::int64_t j = 0; j < kHidden; ++j) {
        const auto at = static_cast<std::size_t>(n * kHidden + j);
        const auto sum = [&](std::int64_t g) { return in(g, j) + hidden(g, j); };
        if (c.gates == 1) h[at] = c.op == "aten::rnn_tanh.input" ? std::tanh(sum(0)) : std::max(sum(0), 0.0);
        if (c.gates == 3) {
          const double r = sigmoid(sum(0)), z = sigmoid(sum(1)), fresh = std::tanh(in(2, j) + r * hidden(2, j));
          h[at] = (1 - z) * fresh + z * before[at];
        }
        if (c.gates == 4) {
          cells[at] = sigmoid(sum(1)) * cells[at] + sigmoid(sum(0)) * std::tanh(sum(2));
          h[at] = sigmoid(sum(3)) * std::tanh(cells[at]);
        }
      }
    }
    y.insert(y.end(), h.begin(), h.end());
  }
  return y;
}

const std::vector<Case>& kinds() {
  static const std::vector<Case> all = {
      {"aten::lstm.input", 4}, {"aten::gru.input", 3}, {"aten::rnn_tanh.input", 1}, {"aten::rnn_relu.input", 1}};
  return all;
}

}  // namespace

TEST_CASE("recurrent layers follow the equations of torch.nn") {
  for (const Case& c : kinds()) {
    CAPTURE(c.op);
    const SmallGraph small = layer_of(c);
    const Outcome outcome = run_training(small);
    CHECK(outcome.sizes == Dims{kSteps, kSamples, kHidden});
    const std::vector<double> expected = by_hand(c, small);
    REQUIRE(outcome.output.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(outcome.output[i] == Approx(expected[i]).epsilon(1e-12));
  }
}

TEST_CASE("recurrent layers have the gradients that differences have") {
  for (Case c : kinds()) {
    for (const bool all_outputs : {false, true}) {
      for (const auto& [layers, biases, bidirectional, batch_first] :
           std::vector<std::tuple<std::int64_t, bool, bool, bool>>{
               {1, true, false, false}, {2, true, true, true}, {2, false, false, true}, {1, true, true, false}}) {
        c.layers = layers;
        c.biases = biases;
        c.bidirectional = bidirectional;
        c.batch_first = batch_first;
        CAPTURE(c.op, layers, biases, bidirectional, batch_first, all_outputs);
        const SmallGraph small = layer_of(c, all_outputs);
        check_gradients(small);
        check_float(small);
      }
    }
  }
}

TEST_CASE("a cell is a layer of one step") {
  for (const auto& [op, gates] : std::vector<std::pair<std::string, std::int64_t>>{
           {"aten::lstm_cell", 4}, {"aten::gru_cell", 3}, {"aten::rnn_tanh_cell", 1}, {"aten::rnn_relu_cell", 1}}) {
    for (const bool biases : {false, true}) {
      CAPTURE(op, biases);
      SmallGraph small;
      const ValueId x = small.weight("x", {kSamples, kFeatures}), h = small.weight("h", {kSamples, kHidden});
      std::vector<ValueId> states = {h};
      if (gates == 4) states.push_back(small.weight("c", {kSamples, kHidden}));
      std::vector<Arg> args = {x, gates == 4 ? Arg(states) : Arg(h)};
      args.emplace_back(small.weight("w", {gates * kHidden, kFeatures}));
      args.emplace_back(small.weight("w", {gates * kHidden, kHidden}));
      for (int i = 0; i < 2; ++i) {
        args.emplace_back(biases ? Arg(small.weight("b", {gates * kHidden})) : Arg(std::monostate{}));
      }
      const ValueId y = small.call(op, args, gates == 4 ? 2 : 1);
      if (gates == 4) small.call("aten::mul.Tensor", {y, small.output(1)});
      check_gradients(small);
      check_float(small);
    }
  }
}

TEST_CASE("a recurrent layer of frozen weights passes gradients on") {
  for (const Case& c : kinds()) {
    CAPTURE(c.op);
    SmallGraph small = layer_of(c);
    for (std::size_t w = 1; w < small.graph.weights.size(); ++w) small.graph.weights[w].trained = false;
    const Outcome outcome = run_training(small);
    CHECK(outcome.gradients[0].size() == static_cast<std::size_t>(kSteps * kSamples * kFeatures));
    for (std::size_t w = 1; w < outcome.gradients.size(); ++w) CHECK(outcome.gradients[w].empty());
    SmallGraph without_input = layer_of(c);  // neither the input nor its weights
    without_input.graph.weights[0].trained = false;
    for (Weight& weight : without_input.graph.weights)
      weight.trained = weight.trained && weight.name != "w_in" && weight.name != "b";
    check_gradients(without_input);
  }
}

TEST_CASE("recurrent layers whose arguments do not go together are not compiled") {
  const auto refused = [](const std::function<void(SmallGraph&, Node&)>& spoil) {
    SmallGraph small = layer_of({"aten::gru.input", 3});
    spoil(small, small.graph.nodes[0]);
    CHECK_THROWS_AS(run_training(small), Error);
  };
  refused([](SmallGraph&, Node& node) { node.args[4] = std::int64_t{2}; });
  refused([](SmallGraph&, Node& node) { node.args[4] = std::int64_t{0}; });
  refused([](SmallGraph&, Node& node) { node.args[3] = false; });
  refused([](SmallGraph&, Node& node) { node.args[7] = true; });
  refused([](SmallGraph&, Node& node) { node.args[8] = true; });  // the states have another number of samples
  refused([](SmallGraph& small, Node& node) { node.args[1] = small.weight("h", {1, kSamples, kHidden + 1}); });
  refused([](SmallGraph& small, Node& node) { node.args[0] = small.weight("x", {kSteps, kFeatures}); });
  refused([](SmallGraph& small, Node& node) {
    std::get<std::vector<ValueId>>(node.args[2])[1] = small.weight("w", {3 * kHidden, kHidden + 1});
  });
  // Dropout that would be drawn between two layers.
  SmallGraph drops = layer_of({"aten::gru.input", 3, 2});
  drops.graph.nodes[0].args[5] = 0.5;
  CHECK_THROWS_WITH(run_training(drops), Catch::Contains("dropout between its layers"));
}

}  // namespace hfta::fusion::cpu::testing
