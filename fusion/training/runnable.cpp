#include "fusion/runnable.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "fusion/data/split.hpp"
#include "fusion/epochs.hpp"
#include "fusion/execution/torch_error.hpp"

namespace hfta::fusion {
namespace {

// Two samples, so that a dimension of the batch is not taken for one of size 1; more where the graph wants more.
std::int64_t samples_wanted(const Graph& graph, const Recipe& recipe, const Dataset& data) {
  if (graph.fixed_batch > 0) return graph.fixed_batch;
  const std::int64_t most = std::min<std::int64_t>(recipe.batch_size, data.size);
  std::int64_t n = std::min<std::int64_t>(2, most);
  while (n < most && !graph.limits.allow(n)) ++n;
  return n;
}

// Repeated where there are fewer.
Dataset first_of(const Dataset& data, std::int64_t wanted) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < wanted; ++i) indices.push_back(i % data.size);
  return subset(data, indices);
}

void check_output(const Graph& graph, const at::Tensor& output, std::int64_t n) {
  if (output.dim() > 0 && output.size(0) == n) return;
  throw Error(
      ErrorKind::kConfig,
      fmt::format("model: found output '{}' {} for a batch of {}, wanted the batch as its first dimension",
                  graph.values[static_cast<std::size_t>(graph.outputs[0])].name, to_text(output.sizes().vec()), n));
}

// Whether samples of the batch have other answers where the one at `at` is another one, that at `from`.
bool feel(Array& array, const Samples& samples, const at::Tensor& answers, std::int64_t at, std::int64_t from) {
  Samples other = samples;
  other.order = at::arange(samples.size(), at::TensorOptions().dtype(at::kLong).device(samples.array(0).device()));
  other.order[at] = from;
  const at::Tensor changed = array.predict(0, other);
  const auto before = [&](const at::Tensor& t) { return t.narrow(0, 0, at).nan_to_num(); };
  const auto behind = [&](const at::Tensor& t) { return t.narrow(0, at + 1, t.size(0) - at - 1).nan_to_num(); };
  return !at::equal(before(answers), before(changed)) || !at::equal(behind(answers), behind(changed));
}

Runnable try_out(const Graph& graph, const Recipe& recipe, const SlotHyper& hyper, const Dataset& data,
                 const c10::Device& device) {
  Recipe exact = recipe;  // the first executor that comes may not compress
  exact.compression.reset();
  Array array(graph, exact, {}, 1, 0, device);
  array.admit(0, {0, hyper});
  const DeviceData few = to_device(first_of(data, samples_wanted(graph, recipe, data)), graph, recipe, device);
  Samples samples{few.inputs, few.target, {}, 0, few.size};
  Batch batch{{samples}};
  for (const Phase& phase : recipe.phases) batch.place = std::lcm(batch.place + 1, phase.every) - 1;  // all have a turn
  std::vector<at::Tensor> losses = array.fresh_losses(0);
  const at::Tensor output = array.predict(0, samples);
  Runnable found;
  if (recipe.loss != Loss::kModel) {
    check_output(graph, output, few.size);
    const std::int64_t last = few.size - 1;
    found.mixes_samples = last > 0 && (feel(array, samples, output, last, 0) || feel(array, samples, output, 0, last));
  }
  array.step(0, batch, {}, losses);
  return found;
}

}  // namespace

Runnable check_runnable(const Graph& graph, const Recipe& recipe, const SlotHyper& hyper, const Dataset& data,
                        const c10::Device& device) {
  try {
    return try_out(graph, recipe, hyper, data, device);
  } catch (const c10::Error& error) {
    if (fault_of(error) != TorchFault::kCall) throw;
    throw Error(ErrorKind::kConfig, fmt::format("model: cannot be trained: {}", first_line(error)));
  }
}

}  // namespace hfta::fusion
