// Which values lie encoded between forward and backward, where, and what the kernels beside them do.
#include "fusion/cpu/encode.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.hpp"
#include "fusion/codec/nonzero.hpp"
#include "fusion/cpu/kernels/output_sums.hpp"
#include "fusion/cpu/kernels/signs.hpp"
#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kBatch = 4, kChannels = 8, kPixels = 12;

// A graph in float32, whose input is a weight; the first convolution reads a copy of it, with channels last.
class Net {
 public:
  Net() { y = weight("x", {kBatch, kChannels, kPixels, kPixels}, false); }

  ValueId weight(const std::string& name, Shape shape, bool trained = true) {
    return small.weight(name, std::move(shape), trained);
  }
  Net& conv(ValueId w) {
    y = small.call("aten::conv2d", {y, w, std::monostate{}, Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, std::int64_t{1}});
    return *this;
  }
  Net& conv() { return conv(weight("w" + std::to_string(small.weights.size()), {kChannels, kChannels, 3, 3})); }
  Net& call(const std::string& op, std::vector<Arg> more = {}) {
    more.insert(more.begin(), y);
    y = small.call(op, std::move(more));
    return *this;
  }
  Net& relu() { return call("aten::relu"); }
  Net& norm(bool trained = true, bool batch = true) {
    const std::string name = std::to_string(small.weights.size());
    const auto vector = [&](const char* what, bool with) { return weight(what + name, {kChannels}, with); };
    return call("aten::batch_norm", {vector("weight", trained), vector("bias", trained), vector("mean", false),
                                     vector("var", false), batch, 0.1, 1e-5, false});
  }

  [[nodiscard]] CompiledGraph plan(Recompute recompute = kBesideEncoded) {
    Graph graph = small.graph;
    for (Value& value : graph.values) value.dtype = DType::kFloat32;
    for (Weight& one : graph.weights) one.dtype = DType::kFloat32;
    graph = with_error(graph, DType::kFloat32);
    std::vector<int> index(graph.nodes.size());
    std::iota(index.begin(), index.end(), 0);
    const BoundLayout bounds = bounded_layers(graph);
    return compile({.graph = graph,
                    .index = index,
                    .dtype = DType::kFloat32,
                    .options = {.recompute = recompute, .bounds = &bounds}})
        .plan;
  }

  SmallGraph small;
  ValueId y = kNoValue;
};

std::size_t count(const CompiledGraph& plan, const std::string& op) {
  return static_cast<std::size_t>(
      std::count_if(plan.infos.begin(), plan.infos.end(), [&](const auto& info) { return info.op == op; }));
}

}  // namespace

TEST_CASE("inputs of convolutions that nothing else reads later are encoded, the relu between them keeps signs") {
  Net net;
  net.conv().relu().conv().relu().conv().relu();
  const CompiledGraph plan = net.plan();
  CHECK(count(plan, "encode") == 3);
  CHECK(count(plan, "decode") == 0);  // each convolution decodes for itself, some images at a time
  for (const EncodedValue& value : plan.encoded) {
    CHECK(value.elements == kBatch * kChannels * kPixels * kPixels);
    REQUIRE(value.layers.size() == 1);
    CHECK(value.layers.front().channels == kChannels);
  }
}

TEST_CASE("values that something else reads, too, are kept") {
  struct Case {
    const char* name;
    std::function<void(Net&)> make;
    std::size_t encoded;
  };
  const std::vector<Case> cases = {
      {"tanh reads its result", [](Net& n) { n.conv().call("aten::tanh").conv(); }, 1},
      {"dropout's result is a convolution's alone",
       [](Net& n) {
         n.conv().call("aten::dropout", {0.5, true}).conv();
       },
       2},
      {"a weight that two layers have",
       [](Net& n) {
         const ValueId w = n.weight("w", {kChannels, kChannels, 3, 3});
         n.conv(w).relu().conv(w).relu().conv();
       },
       1},  // the last one's
      {"a weight that is not trained",
       [](Net& n) {
         n.conv().relu().conv(n.weight("f", {kChannels, kChannels, 3, 3}, false)).relu().conv();
       },
       2},
      {"a product of the value with itself",
       [](Net& n) {
         n.conv().relu();
         const ValueId x = n.y;
         n.conv().call("aten::mul.Tensor", {x});
       },
       1},
      {"two layers of one value",
       [](Net& n) {
         n.conv().relu();
         const ValueId x = n.y;
         const ValueId other = n.conv().y;
         n.y = x;
         n.conv().call("aten::add.Tensor", {other, std::int64_t{1}});
       },
       2},
      {"a norm, and what it makes", [](Net& n) { n.conv().norm().relu().conv(); }, 3},
      {"a norm by running statistics", [](Net& n) { n.conv().norm(true, false).relu().conv(); }, 3},
      {"a norm that is not trained: its result is computed again", [](Net& n) { n.conv().norm(false).relu().conv(); },
       1},
      {"a norm behind a weight that has no bound",
       [](Net& n) {
         n.call("aten::mul.Tensor", {n.weight("scale", {kChannels, 1, 1})});
         n.conv().norm().relu().conv();
       },
       1},
      {"a norm and a layer of one value",
       [](Net& n) {
         n.conv();
         const ValueId x = n.y;
         const ValueId other = n.norm().y;
         n.y = x;
         n.conv().call("aten::add.Tensor", {other, std::int64_t{1}});
       },
       1},
      {"a norm whose result is read by something else: it is computed again, from what is kept",
       [](Net& n) {
         n.conv().norm();
         n.call("aten::mul.Tensor", {n.y});
       },
       1},
  };
  for (const Case& one : cases) {
    INFO(one.name);
    Net net;
    one.make(net);
    CHECK(count(net.plan(), "encode") == one.encoded);
  }
}

TEST_CASE("a norm passes its noise on to what it is computed from") {
  Net net;
  net.conv().norm().relu().conv().norm();
  const BoundLayout bounds = [&] {
    Graph graph = net.small.graph;
    for (Weight& one : graph.weights) one.dtype = DType::kFloat32;
    return bounded_layers(graph);
  }();
  std::vector<std::size_t> layers;  // conv, norm, conv, norm
  for (std::size_t w = 0; w < bounds.weights(); ++w) {
    if (bounds.has(w)) layers.push_back(w);
  }
  REQUIRE(layers.size() == 4);
  CHECK_FALSE(bounds.is_norm(layers[2]));
  CHECK(bounds.below(layers[1]) == std::vector<std::size_t>{layers[0]});
  CHECK(bounds.below(layers[3]) == std::vector<std::size_t>{layers[0], layers[1], layers[2]});
  CHECK(bounds.norms_above(layers[0]) == 2);
  CHECK(bounds.norms_above(layers[1]) == 1);
  CHECK(bounds.norms_above(layers[3]) == 0);
}

TEST_CASE("a norm's result lies where its input lay, which is encoded before") {
  const auto arena_of = [](int norms) {
    Net net;
    net.conv();
    for (int k = 0; k < norms; ++k) net.norm();
    return net.plan().arena_bytes;
  };
  constexpr std::size_t kElements = kBatch * kChannels * kPixels * kPixels, kNorms = 8;
  const auto encoded = static_cast<std::size_t>(kBitsOfNormInput / 8 * kElements) + 64;
  CHECK(arena_of(1 + kNorms) < arena_of(1) + kNorms * encoded + sizeof(float) * kElements);
}

TEST_CASE("a gradient that goes on as it is takes the place of the one before, however long the way") {
  Net net;
  net.conv();
  constexpr std::size_t kAdditions = 4;
  for (std::size_t k = 0; k < kAdditions; ++k) {
    const ValueId x = net.y;
    const ValueId other = net.conv().y;
    net.y = x;
    net.call("aten::add.Tensor", {other, std::int64_t{1}});
  }
  const CompiledGraph plan = net.plan();
  const auto copies = std::count_if(plan.infos.begin(), plan.infos.end(),
                                    [](const auto& info) { return info.op == "aten::add.Tensor" && info.backward; });
  CHECK(copies == kAdditions);  // of the gradient for the convolution; the other one is handed on
}

TEST_CASE("nothing is computed again from a value that was encoded") {
  const auto made = [](bool frozen) {
    Net net;
    net.conv().relu();
    const ValueId x = net.y;
    const ValueId other = net.conv(net.weight("first", {kChannels, kChannels, 3, 3}, !frozen)).y;
    net.y = x;
    net.call("aten::max_pool2d", {Ints{3, 3}, Ints{1, 1}, Ints{1, 1}, Ints{1, 1}, false}).conv();
    net.call("aten::mul.Tensor", {frozen ? x : other});
    return net.plan();
  };
  const CompiledGraph exact = made(true), encoded = made(false);
  CHECK(exact.recomputed == 1);  // the pool's result, of x, which the product keeps as it is
  CHECK(count(exact, "encode") == 1);
  CHECK(encoded.recomputed == 0);
  CHECK(count(encoded, "encode") == 3);
}

TEST_CASE("an encoded value's memory is free until it is decoded") {
  Net net;
  for (int k = 0; k < 8; ++k) net.conv().relu();
  const Graph graph = [&] {
    Graph g = net.small.graph;
    for (Value& value : g.values) value.dtype = DType::kFloat32;
    for (Weight& one : g.weights) one.dtype = DType::kFloat32;
    return with_error(g, DType::kFloat32);
  }();
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  const CompiledGraph kept = compile({.graph = graph, .index = index, .dtype = DType::kFloat32}).plan;
  const std::size_t value = sizeof(float) * kBatch * kChannels * kPixels * kPixels;
  const std::size_t encoding = net.plan().arena_bytes;
  CAPTURE(encoding, kept.arena_bytes, value);
  CHECK(encoding + 6 * value < kept.arena_bytes);
  for (int k = 0; k < 8; ++k) net.conv().relu();  // each output lies where its input lay, before it was encoded
  CHECK(net.plan().arena_bytes < encoding + 2 * value);
}

TEST_CASE("values are encoded in float32 alone") {
  Net net;
  net.conv().relu().conv();
  const Graph graph = with_error(net.small.graph, DType::kFloat64);
  std::vector<int> index(graph.nodes.size());
  std::iota(index.begin(), index.end(), 0);
  const BoundLayout bounds = bounded_layers(graph);
  CHECK(bounds.size() == 0);
  const TrainingOptions options = {.recompute = 1, .bounds = &bounds};
  const CompileRequest request = {.graph = graph, .index = index, .dtype = DType::kFloat64, .options = options};
  CHECK_THROWS_AS(compile(request), Error);
}

TEST_CASE("a value that two layers read is encoded within the smaller one of their bounds") {
  constexpr float kSmall = 0.01F, kLarge = 0.5F;
  constexpr std::size_t kBound = 0, kFound = 1;  // among a layer's numbers: fusion/codec/slot_bounds.cpp
  const BoundLayout layout({2, 2});
  std::vector<float> x(2048), back(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
  const Tensor room{0, 0, {0}, {1}, DType::kUInt8};
  const std::vector<EncodedValue> plan = {{2048, 2048, {{0, 4, 1}, {1, 4, 1}}, std::nullopt, room}};
  std::array<std::byte*, 1> buffers = {nullptr};
  const Run run{buffers, {}, {}};
  for (const auto& [first, second] : {std::pair{kSmall, kLarge}, {kLarge, kSmall}}) {
    std::vector<double> row(layout.size(), 0);
    for (const auto& [layer, bound] : {std::pair{std::size_t{0}, first}, {std::size_t{1}, second}}) {
      row[layout.offset(layer) + kBound] = static_cast<double>(bound);
      row[layout.offset(layer) + kFound] = 1;
    }
    SlotBounds bounds(layout, row, 100);
    EncodedValues values;
    values.begin(1);
    Coding coding(plan, values, bounds, 0.01);
    coding.encode(run, 0, x.data());
    coding.decode(run, 0, 0, 2048, back.data(), nullptr);
    float most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - back[i]));
    CHECK(most < 1.001F * kSmall);
    CHECK(most > 0.9F * kSmall);
  }
}

TEST_CASE("signs of a relu's result mask its gradient as the result itself does") {
  for (const std::int64_t n : {1, 31, 32, 33, 1000, 100003}) {
    CAPTURE(n);
    std::vector<float> y(static_cast<std::size_t>(n)), dy(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i] = std::max(0.0F, std::sin(static_cast<float>(i)));
      dy[i] = static_cast<float>(i) - 50;
    }
    if (n > 5) y[5] = std::nanf("");  // stays
    std::vector<float> wanted = dy;
    for (std::size_t i = 0; i < y.size(); ++i) wanted[i] = y[i] == 0 ? 0 : dy[i];
    Team team(3);
    for (Team* const who : {static_cast<Team*>(nullptr), &team}) {
      std::vector<std::uint32_t> words(mask_words(static_cast<std::size_t>(n)), 0xffffffffU);
      std::vector<float> found = dy;
      pack_signs(who, y.data(), words.data(), n);
      mask_by_signs(who, found.data(), words.data(), n);
      CHECK(found == wanted);
    }
  }
}

TEST_CASE("sums over a convolution's output leave out what meets padding") {
  const std::vector<ConvShape> shapes = {
      {.n = 2, .c = 3, .o = 5, .in = {7, 6}, .kernel = {3, 3}, .padding = {1, 1}},
      {.n = 2, .c = 3, .o = 2, .in = {9, 8}, .kernel = {3, 2}, .stride = {2, 3}, .padding = {2, 0}, .dilation = {2, 1}},
      {.n = 1, .c = 3, .o = 4, .in = {5, 5}, .kernel = {1, 1}},
      {.n = 1, .c = 1, .o = 1, .in = {2, 2}, .kernel = {5, 5}, .padding = {4, 4}, .dilation = {2, 2}}};
  for (ConvShape s : shapes) {
    s.out = conv_output(s);
    const auto channels = static_cast<std::size_t>(s.o);
    std::vector<float> dy(static_cast<std::size_t>(s.n * s.out[0] * s.out[1] * s.o));
    for (std::size_t i = 0; i < dy.size(); ++i) dy[i] = std::sin(static_cast<float>(i)) + 0.1F;
    std::vector<double> scratch(2 * channels), squares(channels, 7), square_of_sums(channels, 7);
    double positions = 0, wanted_positions = 0;
    sum_output(s, dy.data(), scratch.data(), {squares, square_of_sums, &positions});
    std::vector<double> wanted_squares(channels, 0), wanted_sums(channels, 0);
    for (std::int64_t tap = 0; tap < s.taps(); ++tap) {
      std::vector<double> sum(channels, 0);
      for (std::int64_t i = 0; i < s.n * s.out[0] * s.out[1]; ++i) {
        const std::int64_t h = i / s.out[1] % s.out[0] * s.stride[0] - s.padding[0] + tap / s.kernel[1] * s.dilation[0];
        const std::int64_t w = i % s.out[1] * s.stride[1] - s.padding[1] + tap % s.kernel[1] * s.dilation[1];
        if (h < 0 || w < 0 || h >= s.in[0] || w >= s.in[1]) continue;
        wanted_positions += 1 / static_cast<double>(s.taps());
        for (std::size_t c = 0; c < channels; ++c) {
          const auto l = static_cast<double>(dy[static_cast<std::size_t>(i) * channels + c]);
          sum[c] += l;
          wanted_squares[c] += l * l / static_cast<double>(s.taps());
        }
      }
      for (std::size_t c = 0; c < channels; ++c) wanted_sums[c] += sum[c] * sum[c] / static_cast<double>(s.taps());
    }
    CHECK(positions == Approx(wanted_positions));
    for (std::size_t c = 0; c < channels; ++c) {
      CHECK(squares[c] == Approx(wanted_squares[c]).margin(1e-12));
      CHECK(square_of_sums[c] == Approx(wanted_sums[c]).margin(1e-12));
    }
  }
}

}  // namespace hfta::fusion::cpu::testing
