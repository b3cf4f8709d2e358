// A post-norm encoder layer as torch.export writes it, multi-head attention and all.
#include <catch2/catch.hpp>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kN = 3, kT = 5, kHeads = 2, kWidth = 4, kD = kHeads * kWidth;

constexpr auto whole(std::int64_t n) { return n; }

// nn.MultiheadAttention works on [T, N, D] whatever batch_first says.
ValueId self_attention(SmallGraph& g, ValueId x, double rate) {
  ValueId h = g.call("aten::transpose.int", {x, whole(1), whole(0)});
  h = g.call("aten::linear", {h, g.weight("in.weight", {3 * kD, kD}), g.weight("in.bias", {3 * kD})});
  h = g.call("aten::unflatten.int", {h, whole(-1), Ints{3, kD}});
  h = g.call("aten::unsqueeze", {h, whole(0)});
  h = g.call("aten::transpose.int", {h, whole(0), whole(-2)});
  h = g.call("aten::squeeze.dim", {h, whole(-2)});
  const ValueId packed = g.call("aten::contiguous", {h, {}});
  std::vector<ValueId> parts;
  for (const std::int64_t which : {0, 1, 2}) {
    h = g.call("aten::select.int", {packed, whole(0), which});
    h = g.call("aten::view", {h, Ints{kT, kN * kHeads, kWidth}});
    h = g.call("aten::transpose.int", {h, whole(0), whole(1)});
    parts.push_back(g.call("aten::view", {h, Ints{kN, kHeads, kT, kWidth}}));
  }
  h = g.call("aten::scaled_dot_product_attention", {parts[0], parts[1], parts[2], {}, rate, true, {}, false});
  h = g.call("aten::permute", {h, Ints{2, 0, 1, 3}});
  h = g.call("aten::contiguous", {h, {}});
  h = g.call("aten::view", {h, Ints{kT * kN, kD}});
  h = g.call("aten::linear", {h, g.weight("out.weight", {kD, kD}), g.weight("out.bias", {kD})});
  h = g.call("aten::view", {h, Ints{kT, kN, kD}});
  return g.call("aten::transpose.int", {h, whole(1), whole(0)});
}

ValueId norm(SmallGraph& g, ValueId x, const std::string& name) {
  return g.call("aten::layer_norm",
                {x, Ints{kD}, g.weight(name + ".weight", {kD}), g.weight(name + ".bias", {kD}), 1e-5, false});
}

}  // namespace

TEST_CASE("an encoder layer as torch.export writes it") {
  for (const double rate : {0.0, 0.3}) {
    CAPTURE(rate);
    SmallGraph g;
    const ValueId table = g.weight("table", {7, kD}), places = g.weight("places", {9, kD});
    const ValueId words = g.constant("words", {kN, kT}, DType::kInt64, {0, 3, 1, 6, 6, 2, 0, 0, 5, 4, 1, 1, 2, 3, 6});
    const ValueId embedded = g.call("aten::embedding", {table, words, whole(-1), false, false});
    const ValueId first = g.call("aten::slice.Tensor", {places, whole(0), whole(0), kT, whole(1)});
    const ValueId x = g.call("aten::add.Tensor", {embedded, first, whole(1)});
    ValueId h = g.call("aten::dropout", {self_attention(g, x, rate), rate, true});
    const ValueId between = norm(g, g.call("aten::add.Tensor", {x, h, whole(1)}), "norm1");
    h = g.call("aten::linear", {between, g.weight("up", {11, kD}), g.weight("up.bias", {11})});
    h = g.call("aten::dropout", {g.call("aten::relu_", {h}), rate, true});
    h = g.call("aten::linear", {h, g.weight("down", {kD, 11}), g.weight("down.bias", {kD})});
    h = norm(g, g.call("aten::add.Tensor", {between, h, whole(1)}), "norm2");
    g.call("aten::transpose.int", {h, whole(1), whole(2)});
    check_gradients(g);
    check_float(g, 1e-4);
  }
}

}  // namespace hfta::fusion::cpu::testing
