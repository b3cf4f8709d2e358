#pragma once
// Small models and data that the array's tests share.

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "fusion/array.hpp"
#include "fusion/layers.hpp"
#include "fusion/phases.hpp"

namespace hfta::fusion::testing {

/// A model with everything a step needs.
struct Model {
  std::string name;
  Graph graph;
  Recipe recipe;
  Batch batch;         ///< shared samples
  bool clips = false;  ///< Slots clip their gradients: clipping().
};

inline LayerSpec layer(std::string kind, std::vector<LayerArg> positional = {}, std::string name = "",
                       std::vector<std::pair<std::string, LayerArg>> named = {}) {
  return {std::move(kind), std::move(name), std::move(positional), std::move(named), "test"};
}

inline at::Tensor counted_normal(std::vector<std::int64_t> shape, DType dtype, std::uint64_t seed) {
  const at::Tensor t = at::empty(shape, at::kDouble);
  CountedRandom random(seed, Stream::kSimulation, 0);
  for (std::int64_t i = 0; i < t.numel(); ++i) t.data_ptr<double>()[i] = random.normal();
  return t.to(dtype == DType::kFloat64 ? at::kDouble : at::kFloat);
}

inline at::Tensor counted_labels(std::int64_t n, std::int64_t classes, std::uint64_t seed) {
  const at::Tensor t = at::empty({n}, at::kLong);
  CountedRandom random(seed, Stream::kSimulation, 1);
  for (std::int64_t i = 0; i < n; ++i) {
    t.data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(classes)));
  }
  return t;
}

/// `input`: of one sample. Classification into `classes`.
inline Model classifier(std::string name, const std::vector<LayerSpec>& layers, Shape input, std::int64_t classes,
                        DType dtype, OptimizerKind optimizer = OptimizerKind::kSgd, std::int64_t n = 6) {
  Shape with_batch = input;
  with_batch.insert(with_batch.begin(), kBatch);
  Model model{std::move(name), build_graph(layers, with_batch, dtype), {}, {}};
  model.recipe.dtype = dtype;
  model.recipe.optimizer = optimizer;
  model.recipe.batch_size = static_cast<int>(n);
  model.recipe.metrics = {{"accuracy"}};
  Shape samples = input;
  samples.insert(samples.begin(), n);
  model.batch.parts = {{{counted_normal(samples, dtype, 7)}, counted_labels(n, classes, 8)}};
  return model;
}

/// Its convolutions have no bias: in front of a batch norm a bias has a gradient of rounding only, of which Adam makes
/// steps.
inline Model conv_net(DType dtype, OptimizerKind optimizer) {
  const auto conv = [](std::int64_t from, std::int64_t to) {
    return layer("conv2d", {from, to, std::int64_t{3}}, "", {{"padding", std::int64_t{1}}, {"bias", false}});
  };
  return classifier("conv net with batch norm",
                    {conv(1, 4), layer("batch_norm2d", {std::int64_t{4}}), layer("relu"),
                     layer("max_pool2d", {std::int64_t{2}}), conv(4, 6), layer("batch_norm2d", {std::int64_t{6}}),
                     layer("relu"), layer("flatten"), layer("linear", {std::int64_t{96}, std::int64_t{5}})},
                    {1, 8, 8}, 5, dtype, optimizer);
}

inline Model dropping(DType dtype, OptimizerKind optimizer) {
  return classifier("net with dropout",
                    {layer("conv2d", {std::int64_t{1}, std::int64_t{5}, std::int64_t{3}}), layer("relu"),
                     layer("dropout", {0.3}), layer("flatten"), layer("linear", {std::int64_t{180}, std::int64_t{17}}),
                     layer("tanh"), layer("dropout", {0.4}), layer("linear", {std::int64_t{17}, std::int64_t{5}})},
                    {1, 8, 8}, 5, dtype, optimizer);
}

inline Model mlp(DType dtype, OptimizerKind optimizer) {
  return classifier("mlp",
                    {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{16}}), layer("relu"),
                     layer("linear", {std::int64_t{16}, std::int64_t{16}}), layer("tanh"),
                     layer("linear", {std::int64_t{16}, std::int64_t{4}})},
                    {3, 4}, 4, dtype, optimizer);
}

/// Layers beyond what is applied at a time (kApplyBytes): by rows, as a whole, and small ones among them.
inline Model large_mlp(DType dtype, OptimizerKind optimizer) {
  const auto linear = [](std::int64_t from, std::int64_t to) { return layer("linear", {from, to}); };
  return classifier("large mlp",
                    {layer("flatten"), linear(48, 1500), layer("relu"), linear(1500, 60), layer("tanh"), linear(60, 5)},
                    {3, 16}, 5, dtype, optimizer);
}

inline Model in_bfloat16(Model model) {
  model.name += " in bfloat16";
  model.recipe.precision = Precision::kBfloat16;
  return model;
}

/// With two parameter groups and parameters that are in none.
inline Model in_groups(Model model) {
  model.name += " in groups";
  model.recipe.groups = {{{"*.bias"}, ""}, {{"layers.1", "nothing"}, ""}};
  return model;
}

/// With optimizer steps by the gradients of several batches, in slot b 1 + b % 3.
inline Model accumulating(Model model) {
  model.name += ", accumulating";
  model.recipe.accumulates = true;
  return model;
}

/// Of three slots in a row the first is clipped at every step, the second has a norm beyond all gradients, and the
/// third none.
inline Model clipping(Model model) {
  model.name += ", clipping";
  model.clips = true;
  return model;
}

/// Slot b's trial: seed 100 + b and numbers that differ from slot to slot.
inline SlotInit trial(const Model& model, int b) {
  SlotInit init;
  init.seed = 100 + static_cast<std::uint64_t>(b);
  init.hyper.optimizer = default_hyper(model.recipe.optimizer);
  init.hyper.optimizer.lr = 0.002 * (1 + b);
  init.hyper.optimizer.weight_decay = 0.01 * b;
  init.hyper.optimizer.momentum = b % 2 == 0 ? 0.9 : 0.0;
  init.hyper.optimizer.nesterov = b % 4 == 2;
  for (std::size_t g = 0; g < model.recipe.groups.size(); ++g) {
    OptimizerHyper& group = init.hyper.groups.emplace_back(init.hyper.optimizer);
    group.lr *= g == 0 ? 1.5 + 0.1 * b : 0.4;
    group.weight_decay = g == 0 ? 0 : 0.05;
    if (g == 1) group.momentum = b % 2 == 0 ? 0.0 : 0.8;
    if (g == 1) group.nesterov = false;
  }
  for (const Phase& phase : model.recipe.phases) {
    PhaseHyper& own = init.hyper.phases.emplace_back();
    own.optimizer = default_hyper(phase.optimizer);
    own.optimizer.lr = 0.01 * (1 + b);
    own.groups.assign(phase.groups.size(), own.optimizer);
    for (OptimizerHyper& group : own.groups) group.lr *= 0.5;
    if (phase.every == 1) own.clip_weights = 0.3 + 0.05 * b;
    if (b % 2 == 1) own.clip_norm = 0.5;
  }
  if (model.recipe.accumulates) init.hyper.accumulate = 1 + b % 3;
  if (model.clips && b % 3 < 2) init.hyper.clip_norm = b % 3 == 0 ? 0.01 : 1e6;
  if (!info_of(model.recipe.loss).numbers.empty()) init.hyper.loss = {0.05 * b};
  for (const Hyper& hyper : model.graph.hypers) init.hyper.graph.push_back(hyper.value * (1 + 0.1 * b));
  return init;
}

/// Array::step's learning rates of the chunk's slots as trial() has them; 0 for empty ones.
inline std::vector<double> rates_of(const Array& array, int chunk) {
  std::vector<double> rates;
  const int first = array.first_slot(chunk);
  for (int b = first; b < first + array.slots_per_chunk(); ++b) {
    const bool occupied = b < array.width() && array.occupied(b);
    const SlotHyper hyper = occupied ? array.init_of(b).hyper : SlotHyper();
    for (std::size_t p = 0; occupied && p < static_cast<std::size_t>(array.phases()); ++p) {
      const PhaseNumbers numbers = numbers_of_phase(hyper, p);
      rates.push_back(numbers.optimizer.lr);
      for (const OptimizerHyper& group : numbers.groups) rates.push_back(group.lr);
    }
    rates.resize(static_cast<std::size_t>((b - first + 1) * array.rates_per_slot()));
  }
  return rates;
}

/// One step of a chunk; its slots' mean losses.
inline at::Tensor step_chunk(Array& array, int chunk, const Batch& batch) {
  at::Tensor sums = array.fresh_losses(chunk).front();
  array.step(chunk, batch, rates_of(array, chunk), sums);
  return (sums[0] / sums[1]).cpu();
}

/// One step of every chunk on shared samples; losses by slot.
inline std::vector<double> step_all(Array& array, const Batch& batch) {
  std::vector<double> losses(static_cast<std::size_t>(array.chunks() * array.slots_per_chunk()));
  array.for_each_chunk([&](int k) {
    const at::Tensor loss = step_chunk(array, k, batch);
    for (std::int64_t i = 0; i < loss.numel(); ++i) {
      losses[static_cast<std::size_t>(array.first_slot(k) + i)] = loss.data_ptr<double>()[i];
    }
  });
  return losses;
}

/// In the place of a chunk's width: one slot at a time by compiled kernels.
inline constexpr int kCompiled = 0;

inline Lowering chunked(int chunk, std::map<std::string, std::string> families = {}, int workers = 1) {
  Lowering lowering;
  if (chunk == kCompiled) lowering.executor = "compiled";
  lowering.chunk = std::max(chunk, 1);
  lowering.families = std::move(families);
  lowering.workers = workers;
  return lowering;
}

inline double relative_difference(const at::Tensor& a, const at::Tensor& b) {
  const double norm = b.to(at::kDouble).norm().item<double>();
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>() / (norm > 0 ? norm : 1);
}

}  // namespace hfta::fusion::testing
