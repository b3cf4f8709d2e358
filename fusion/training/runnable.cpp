#include "fusion/runnable.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/data/split.hpp"
#include "fusion/divided_batches.hpp"
#include "fusion/epochs.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/graph/batch.hpp"
#include "fusion/graph/place.hpp"
#include "fusion/op_traits.hpp"
#include "fusion/task_graph.hpp"

namespace hfta::fusion {
namespace {

// Several samples, so that a dimension of the batch is not taken for one of size 1, and an odd number, as two that are
// mixed may cancel out; more where the graph wants more.
constexpr std::int64_t kFew = 5;
std::int64_t samples_wanted(const Graph& graph, const Recipe& recipe, const Dataset& data) {
  if (graph.fixed_batch > 0) return graph.fixed_batch;
  const std::int64_t most = std::min<std::int64_t>(recipe.batch_size, data.size);
  std::int64_t n = std::min<std::int64_t>(kFew, most);
  while (n < most && !graph.limits.allow(n)) ++n;
  return n;
}

// The first ones, repeated where there are fewer; behind them kSpares from elsewhere, to change a batch with.
constexpr std::int64_t kSpares = 2;
Dataset first_of(const Dataset& data, std::int64_t wanted) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < wanted; ++i) indices.push_back(i % data.size);
  indices.push_back(data.size / 2);
  indices.push_back(data.size - 1);
  return subset(data, indices);
}

void check_output(const Graph& graph, const at::Tensor& output, std::int64_t n) {
  if (output.dim() > 0 && output.size(0) == n) return;
  throw Error(
      ErrorKind::kConfig,
      fmt::format("model: found output '{}' {} for a batch of {}, wanted the batch as its first dimension",
                  graph.values[static_cast<std::size_t>(graph.outputs[0])].name, to_text(output.sizes().vec()), n));
}

// The largest difference between the answers of two runs, but for the sample at `changed`.
double apart(const at::Tensor& a, const at::Tensor& b, std::int64_t changed) {
  const auto others = [&](const at::Tensor& t) {
    const at::Tensor rest = at::cat({t.narrow(0, 0, changed), t.narrow(0, changed + 1, t.size(0) - changed - 1)});
    return rest.to(at::kDouble).nan_to_num();
  };
  return (others(a) - others(b)).abs().max().item<double>();
}

// Evaluation's outputs that have a part for each sample. By position in Array::evaluate().
std::vector<std::size_t> outputs_by_sample(const Graph& model, const Recipe& recipe) {
  const Graph graph = with_loss(model, recipe);
  const Graph& evaluated = graph.evaluation != nullptr ? *graph.evaluation : graph;
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < evaluated.outputs.size(); ++i) {
    if (begins_with_batch(evaluated.values[static_cast<std::size_t>(evaluated.outputs[i])].shape)) found.push_back(i);
  }
  return found;
}

// What evaluation gives for each sample: of a built-in loss the output alone, which the loss takes sample by sample.
using Answers = std::vector<at::Tensor>;

// Asks a slot for the same samples in other company.
class Mixing {
 public:
  Mixing(Array& array, const Graph& model, const Recipe& recipe, const Samples& samples)
      : array_(array),
        samples_(samples),
        outputs_(recipe.loss == Loss::kModel ? outputs_by_sample(model, recipe) : std::vector<std::size_t>{0}) {}

  // Whether samples get other answers where the first or the last one of the batch is another one: beyond what a device
  // that adds in any order makes of the same batch.
  [[nodiscard]] bool is_seen() const {
    constexpr double kBeyondNoise = 100;
    const std::int64_t n = samples_.size();
    if (n < 2) return false;
    const Answers answers = answers_to(samples_), again = answers_to(samples_);
    const std::array<std::int64_t, kSpares> places = {0, n - 1};
    for (std::size_t spare = 0; spare < places.size(); ++spare) {
      Samples other = samples_;
      other.order = at::arange(n, at::TensorOptions().dtype(at::kLong).device(samples_.array(0).device()));
      other.order[places.at(spare)] = n + static_cast<std::int64_t>(spare);
      const Answers now = answers_to(other);
      for (std::size_t i = 0; i < answers.size(); ++i) {
        const double noise = std::max(apart(answers[i], again[i], 0), apart(answers[i], again[i], n - 1));
        if (apart(answers[i], now[i], places.at(spare)) > kBeyondNoise * noise) return true;
      }
    }
    return false;
  }

 private:
  [[nodiscard]] Answers answers_to(const Samples& samples) const {
    const std::vector<at::Tensor> all = array_.evaluate(0, samples);
    Answers answers;
    for (const std::size_t i : outputs_) {
      const at::Tensor& output = all.at(i);
      if (output.dim() > 0 && output.size(0) == samples.size() && output.numel() > 0) answers.push_back(output);
    }
    return answers;
  }

  Array& array_;
  const Samples& samples_;
  std::vector<std::size_t> outputs_;  // positions in Array::evaluate()
};

Runnable try_out(const Graph& graph, const Recipe& recipe, const SlotHyper& hyper, const Dataset& data,
                 const c10::Device& device) {
  Recipe exact = recipe;  // the first executor that comes may not compress
  exact.compression.reset();
  Array array(graph, exact, {.width = 1, .study_seed = 0, .device = device});
  SlotHyper once = hyper;
  once.accumulate = 1;
  array.admit(0, {0, once});
  const std::int64_t n = samples_wanted(graph, recipe, data);
  const DeviceData few = to_device(first_of(data, n), graph, recipe, device);
  Samples samples{few.inputs, few.target, {}, 0, n};
  Batch batch{{samples}};
  for (const Phase& phase : recipe.phases) batch.place = std::lcm(batch.place + 1, phase.every) - 1;  // all have a turn
  std::vector<at::Tensor> losses = array.fresh_losses(0);
  const at::Tensor output = array.predict(0, samples);
  if (recipe.loss != Loss::kModel) check_output(graph, output, n);
  std::optional<Mixing> doubted;
  if (!evaluates_samples_apart(graph)) doubted.emplace(array, graph, exact, samples);
  Runnable found{doubted && doubted->is_seen()};
  constexpr double kRate = 0.01;
  const std::vector<double> rates(static_cast<std::size_t>(array.rates_per_slot()), kRate);
  array.step(0, batch, rates, losses);
  // Weights that begin as zeros may hide what is before them.
  found.mixes_samples = found.mixes_samples || (doubted && doubted->is_seen());
  return found;
}

// The calls that LibTorch's message may be about, which names an op and no place: "; see model.py:3: head
// (aten::relu)". "" if none is known.
std::string calls_meant(const Graph& graph, const std::string& message) {
  constexpr std::string_view kNamespace = "aten::", kOverwritten = "modified by an inplace operation";
  constexpr std::size_t kMost = 3;
  const std::size_t named = message.find(kNamespace);
  const std::size_t end = message.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", named + kNamespace.size());
  const std::string op = named == std::string::npos ? "" : message.substr(named, end - named);
  const bool overwritten = message.find(kOverwritten) != std::string::npos;
  std::vector<std::string> places;
  for (const Node& node : graph.nodes) {
    const OpTraits* const traits = op_traits(node.op);
    const bool meant = overwritten ? traits != nullptr && traits->in_place : node.op.substr(0, node.op.find('.')) == op;
    if (meant && places.size() < kMost) places.push_back(printable(place_of(node)));
  }
  return places.empty() ? "" : "; see " + join(places);
}

}  // namespace

Runnable check_runnable(const Graph& graph, const Recipe& recipe, const SlotHyper& hyper, const Dataset& data,
                        const c10::Device& device) {
  try {
    return try_out(graph, recipe, hyper, data, device);
  } catch (const c10::Error& error) {
    if (fault_of(error) != TorchFault::kCall) throw;
    const std::string why = first_line(error);
    throw Error(ErrorKind::kConfig, fmt::format("model: cannot be trained: {}{}", why, calls_meant(graph, why)));
  }
}

}  // namespace hfta::fusion
