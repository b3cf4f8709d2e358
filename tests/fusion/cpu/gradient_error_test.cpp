// The error that coded inputs make in the weight gradients of convolutions, against what fusion/codec/bounds.hpp
// predicts, layer by layer, of nets with and without batch norm, of separable and dilated convolutions.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "fusion/codec/bounds.hpp"
#include "fusion/codec/codec.hpp"
#include "fusion/cpu/kernels/output_sums.hpp"
#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kBatch = 8, kPixels = 10;

struct Layer {
  std::int64_t in = 0, out = 0, kernel = 3, dilation = 1, groups = 1;
  bool norm = false;
  double scale = 1;  // batch norm's weights are within this of 0

  [[nodiscard]] std::int64_t padding() const { return dilation * (kernel - 1) / 2; }
};

// Where the layers of a net are found: positions in Graph::weights, and of the input among the outputs.
struct Place {
  std::size_t weight = 0, output_gradient = 0, input = 0;
};

// Layers one behind another. To each convolution's output zeros are added that are trained: their gradient is L.
class Chain {
 public:
  Chain(const std::vector<Layer>& layers, double seed) : layers_(layers), seed_(seed) {
    ValueId y = weight({kBatch, layers.front().in, kPixels, kPixels}, 1);
    std::vector<ValueId> inputs;
    for (const Layer& layer : layers) {
      inputs.push_back(y);
      y = convolved(y, layer);
      if (layer.norm) y = normed(y, layer);
      y = small_.call("aten::relu", {y});
    }
    y = small_.call("aten::mean.dim", {y, Ints{2, 3}, false, std::monostate{}});
    graph_ = with_error(small_.graph, DType::kFloat64);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      places_[i].input = graph_.outputs.size();
      graph_.outputs.push_back(inputs[i]);
    }
  }

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] const std::vector<std::vector<double>>& weights() const { return small_.weights; }

 private:
  // Values in (-scale, scale), other ones for each seed.
  ValueId weight(Shape shape, double scale, bool trained = true) {
    const ValueId id = small_.weight("w" + std::to_string(small_.weights.size()), std::move(shape), trained);
    for (double& v : small_.weights.back()) v = scale * std::sin(1e4 * (v + seed_));
    return id;
  }
  ValueId convolved(ValueId x, const Layer& layer) {
    Place place;
    const double scale = std::sqrt(6.0 / static_cast<double>(layer.in / layer.groups * layer.kernel * layer.kernel));
    place.weight = small_.weights.size();
    const ValueId w = weight({layer.out, layer.in / layer.groups, layer.kernel, layer.kernel}, scale);
    const ValueId y =
        small_.call("aten::conv2d", {x, w, std::monostate{}, Ints{1, 1}, Ints{layer.padding(), layer.padding()},
                                     Ints{layer.dilation, layer.dilation}, layer.groups});
    place.output_gradient = small_.weights.size();
    const ValueId zeros = weight({kBatch, layer.out, kPixels, kPixels}, 0);
    places_.push_back(place);
    return small_.call("aten::add.Tensor", {y, zeros, std::int64_t{1}});
  }
  ValueId normed(ValueId x, const Layer& layer) {
    const ValueId scale = weight({layer.out}, layer.scale), shift = weight({layer.out}, 0.3 * layer.scale);
    const ValueId mean = weight({layer.out}, 0, false), variance = weight({layer.out}, 0, false);
    return small_.call("aten::batch_norm", {x, scale, shift, mean, variance, true, 0.1, 1e-5, false});
  }

  std::vector<Layer> layers_;
  double seed_;
  SmallGraph small_;
  Graph graph_;
  std::vector<Place> places_;
};

struct Found {
  std::vector<double> x, l, dw;  // row-major
};

std::vector<double> elements(const Tensor& t, std::span<std::byte* const> buffers) {
  std::vector<double> out;
  const auto* const base = reinterpret_cast<const double*>(buffers[static_cast<std::size_t>(t.buffer)]) + t.offset;
  Dims at(t.sizes.size(), 0);
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < at.size(); ++d) place += at[d] * t.strides[d];
    out.push_back(base[place]);
    for (std::size_t d = at.size(); d-- > 0 && ++at[d] == t.sizes[d];) at[d] = 0;
  }
  return out;
}

// One step's inputs, gradients of outputs and of weights, by layer.
std::vector<Found> run_chain(const Chain& chain) {
  std::vector<int> index(chain.graph().nodes.size());
  std::iota(index.begin(), index.end(), 0);
  const CompiledGraph plan = compile({.graph = chain.graph(), .index = index, .dtype = DType::kFloat64}).plan;
  Arena arena;
  const std::span<std::byte*> buffers = arena.bind(plan);
  std::vector<std::vector<double>> weights = chain.weights();
  for (std::size_t w = 0; w < weights.size(); ++w) {
    buffers[static_cast<std::size_t>(plan.weights[w].buffer)] = reinterpret_cast<std::byte*>(weights[w].data());
  }
  auto* const target = reinterpret_cast<double*>(buffers[static_cast<std::size_t>(plan.inputs[0].buffer)]);
  for (std::int64_t i = 0; i < plan.inputs[0].numel(); ++i) target[i] = std::sin(static_cast<double>(i));
  const Run run{buffers, {}, {1, 2}};
  for (const Kernel& kernel : plan.kernels) kernel(run);
  std::vector<Found> all;
  for (const Place& place : chain.places()) {
    all.push_back({elements(plan.outputs[place.input], buffers),
                   elements(plan.gradient(place.output_gradient), buffers),
                   elements(plan.gradient(place.weight), buffers)});
  }
  return all;
}

// dW = sum L x, slowly. x [N, in, P, P], l [N, out, P, P] -> [out, in / groups, kernel, kernel].
std::vector<double> weight_gradient(const Layer& layer, const std::vector<double>& x, const std::vector<double>& l) {
  std::vector<double> dw;
  const std::int64_t per_group = layer.in / layer.groups, out_per_group = layer.out / layer.groups;
  const auto at = [](const std::vector<double>& t, std::int64_t channels, std::int64_t n, std::int64_t c,
                     std::int64_t h, std::int64_t w) {
    return t[static_cast<std::size_t>(((n * channels + c) * kPixels + h) * kPixels + w)];
  };
  for (std::int64_t o = 0; o < layer.out; ++o) {
    for (std::int64_t k = 0; k < per_group * layer.kernel * layer.kernel; ++k) {
      const std::int64_t c = o / out_per_group * per_group + k / (layer.kernel * layer.kernel);
      const std::int64_t dh = k / layer.kernel % layer.kernel * layer.dilation - layer.padding();
      const std::int64_t dv = k % layer.kernel * layer.dilation - layer.padding();
      double sum = 0;
      for (std::int64_t n = 0; n < kBatch; ++n) {
        for (std::int64_t h = std::max<std::int64_t>(0, -dh); h < std::min(kPixels, kPixels - dh); ++h) {
          for (std::int64_t w = std::max<std::int64_t>(0, -dv); w < std::min(kPixels, kPixels - dv); ++w) {
            sum += at(l, layer.out, n, o, h, w) * at(x, layer.in, n, c, h + dh, w + dv);
          }
        }
      }
      dw.push_back(sum);
    }
  }
  return dw;
}

// t [N, channels, P, P] with channels last.
std::vector<float> channels_last(const std::vector<double>& t, std::int64_t channels) {
  constexpr std::int64_t kPlane = kPixels * kPixels;
  std::vector<float> out;
  for (std::int64_t i = 0; i < kBatch * kPlane; ++i) {
    for (std::int64_t c = 0; c < channels; ++c) {
      out.push_back(static_cast<float>(t[static_cast<std::size_t>((i / kPlane * channels + c) * kPlane + i % kPlane)]));
    }
  }
  return out;
}

// By group of the layer, as its backward would sum them up.
std::vector<OutputSums> sums_of(const Layer& layer, const Found& found) {
  const auto out = static_cast<std::size_t>(layer.out), per_group = out / static_cast<std::size_t>(layer.groups);
  const Pair pixels = {kPixels, kPixels}, both = {layer.kernel, layer.kernel};
  const ConvShape shape{.n = kBatch,
                        .c = layer.in,
                        .o = layer.out,
                        .in = pixels,
                        .out = pixels,
                        .kernel = both,
                        .padding = {layer.padding(), layer.padding()},
                        .dilation = {layer.dilation, layer.dilation},
                        .groups = layer.groups};
  std::vector<double> scratch(2 * out), squares(out), square_of_sums(out);
  double positions = 0;
  sum_output(shape, channels_last(found.l, layer.out).data(), scratch.data(), {squares, square_of_sums, &positions});
  std::vector<OutputSums> groups(static_cast<std::size_t>(layer.groups));
  for (std::size_t o = 0; o < out; ++o) {
    OutputSums& group = groups[o / per_group];
    group.squares += squares[o] / static_cast<double>(per_group);
    group.square_of_sum += square_of_sums[o] / static_cast<double>(per_group);
    group.positions = positions;
  }
  return groups;
}

double root_mean_square(const std::vector<double>& v) {
  return std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0) / static_cast<double>(v.size()));
}

struct Errors {
  double wanted = 0, predicted = 0, measured = 0;
};

// Where the gradient may be off by 1 % of its scale. A bound draws one set of errors, of few numbers in a depthwise
// layer; bounds beside it draw others.
Errors errors_of(const Layer& layer, const Found& found) {
  const std::vector<float> x(found.x.begin(), found.x.end()), dw(found.dw.begin(), found.dw.end()),
      rows = channels_last(found.x, layer.in);
  const SavedInput input{rows, static_cast<std::size_t>(layer.in)};
  const std::vector<OutputSums> outputs = sums_of(layer, found);
  GradientScale scale;
  scale.add(dw);
  Errors errors{0.01 * scale.value(1)};
  const float largest = bound_for(input, outputs, errors.wanted);
  constexpr int kBounds = 12;
  for (int k = 0; k < kBounds; ++k) {
    const float bound = largest * (1 - 0.02F * static_cast<float>(k));
    std::vector<std::byte> bytes(most_encoded_bytes(x.size()));
    std::vector<float> back(x.size());
    decode(std::span(bytes).first(encode(x, bound, bytes)), back);
    std::vector<double> off(x.size());
    std::transform(back.begin(), back.end(), x.begin(), off.begin(), std::minus<>());
    errors.predicted += std::pow(gradient_error(input, outputs, bound), 2) / kBounds;
    errors.measured += std::pow(root_mean_square(weight_gradient(layer, off, found.l)), 2) / kBounds;
  }
  return {errors.wanted, std::sqrt(errors.predicted), std::sqrt(errors.measured)};
}

struct Net {
  const char* name;
  std::vector<Layer> layers;
};

const std::vector<Net>& nets() {
  static const std::vector<Net> all = {
      {"plain", {{3, 8}, {8, 12}, {12, 12}, {12, 8}}},
      {"batch norm", {{3, 8, 3, 1, 1, true}, {8, 12, 3, 1, 1, true}, {12, 12, 3, 1, 1, true}, {12, 8, 3, 1, 1, true}}},
      {"separable",
       {{3, 32, 3, 1, 1, true},
        {32, 32, 3, 1, 32, true},
        {32, 24, 1, 1, 1, true},
        {24, 24, 3, 1, 24, true},
        {24, 16, 1}}},
      {"dilated, gamma near 0",
       {{3, 8, 3, 2, 1, true, 1e-3}, {8, 12, 3, 3, 1, true}, {12, 12, 3, 2, 1, true, 1e-3}, {12, 8, 3, 1, 2}}},
  };
  return all;
}

}  // namespace

TEST_CASE("coded inputs put weight gradients off by what is predicted") {
  for (const Net& net : nets()) {
    for (const double seed : {0.0, 0.37, 0.81}) {
      const Chain chain(net.layers, seed);
      const std::vector<Found> found = run_chain(chain);
      for (std::size_t i = 0; i < found.size(); ++i) {
        const Layer& layer = net.layers[i];
        CAPTURE(net.name, seed, i);
        const std::vector<double> exact = weight_gradient(layer, found[i].x, found[i].l);
        for (std::size_t k = 0; k < exact.size(); ++k) REQUIRE(exact[k] == Approx(found[i].dw[k]).margin(1e-9));
        const Errors errors = errors_of(layer, found[i]);
        CAPTURE(errors.wanted, errors.predicted, errors.measured);
        CHECK(errors.predicted / errors.measured > 0.8);
        CHECK(errors.predicted / errors.measured < 1.25);
        CHECK(errors.measured < 1.25 * errors.wanted);
        CHECK(errors.measured > 0.25 * errors.wanted);
      }
    }
  }
}

}  // namespace hfta::fusion::cpu::testing
