// Evaluation over whole sets: Epochs' other half.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "fusion/epochs.hpp"
#include "fusion/training/evaluation_sums.hpp"

namespace hfta::fusion {

// Larger batches than training's make evaluation of small samples faster.
std::int64_t evaluation_batch(const Recipe& recipe, const EpochOptions& options, std::int64_t elements) {
  if (options.fixed_batch > 0) return options.fixed_batch;
  if (recipe.loss == Loss::kModel || options.may_mix_samples) return recipe.batch_size;
  constexpr std::int64_t kElements = std::int64_t{1} << 20;
  const std::int64_t small = std::min<std::int64_t>(256, kElements / std::max<std::int64_t>(1, elements));
  const std::int64_t batch = std::max<std::int64_t>(recipe.batch_size, small);
  const std::int64_t allowed = options.largest_batch > 0 ? std::min(batch, options.largest_batch) : batch;
  return options.limits.allow(allowed) ? allowed : recipe.batch_size;
}

std::int64_t Epochs::evaluation_batch() const {
  return fusion::evaluation_batch(recipe_, options_, train().inputs.front().stride());
}

// The next batch size from n on that the graph takes.
std::int64_t Epochs::filled_up(std::int64_t n) const {
  if (options_.fixed_batch > 0) return options_.fixed_batch;
  while (n < evaluation_batch() && !options_.limits.allow(n)) ++n;
  return n;
}

// Batches in order; the last one is filled up with its last sample where the graph does not take so few.
std::vector<Epochs::EvaluationBatch> Epochs::evaluation_batches(const DeviceData& data) const {
  std::vector<EvaluationBatch> all;
  for (std::int64_t begin = 0; begin < data.size; begin += evaluation_batch()) {
    const std::int64_t end = std::min(begin + evaluation_batch(), data.size);
    Samples samples{data.inputs, data.target, {}, begin, end};
    const std::int64_t filled = filled_up(end - begin);
    if (filled > end - begin) {
      const auto numbers = at::TensorOptions().dtype(at::kLong).device(samples.array(0).device());
      samples.order = at::arange(begin, begin + filled, numbers).clamp_max_(end - 1);
      samples.begin = 0;
      samples.end = filled;
    }
    all.push_back({std::move(samples), begin, end});
  }
  return all;
}

// Metrics of every chunk that `wanted` and that has an occupied slot.
std::vector<Epochs::ChunkMetrics> Epochs::evaluate_chunks(Array& array, const DeviceData& data,
                                                          const std::function<bool(int chunk)>& wanted) const {
  const int c = array.slots_per_chunk();
  std::vector<EvaluationSums> sums;
  sums.reserve(static_cast<std::size_t>(array.chunks()));
  for (int k = 0; k < array.chunks(); ++k) sums.emplace_back(recipe_, c == 1 ? 0 : c);
  const auto add = [&](int chunk, const EvaluationBatch& batch) {
    if (!wanted(chunk)) return;
    const bool labelled = info_of(recipe_.loss).targets != Targets::kNone;
    const at::Tensor target = labelled ? data.target.range(batch.begin, batch.end) : at::Tensor();
    const std::vector<at::Tensor> outputs = array.evaluate(chunk, batch.samples);
    if (!array.has_answers()) return;
    sums[static_cast<std::size_t>(chunk)].add(outputs, target, batch.end - batch.begin, batch.samples.size());
  };
  const std::vector<EvaluationBatch> all = evaluation_batches(data);
  const bool at_hand = all.empty() || all.front().samples.at_hand();
  if (array.shares_layers() || !at_hand) {
    for (const EvaluationBatch& batch : all) {
      EvaluationBatch ready{at_hand ? batch.samples : batch.samples.taken(), batch.begin, batch.end};
      if (array.shares_layers()) array.prepare(ready.samples, SampleUse::kEvaluation);
      array.for_each_chunk([&](int k) { add(k, ready); });
    }
  } else {
    array.for_each_chunk([&](int k) {
      for (const EvaluationBatch& batch : all) add(k, batch);
    });
  }
  std::vector<ChunkMetrics> metrics(sums.size());
  if (!array.has_answers()) return metrics;
  array.for_each_chunk([&](int k) {
    if (wanted(k)) metrics[static_cast<std::size_t>(k)] = sums[static_cast<std::size_t>(k)].result();
  });
  return metrics;
}

std::map<std::string, double> Epochs::evaluate(Array& array, int slot, const DeviceData& data,
                                               const std::string& prefix) const {
  if (!array.occupied(slot)) throw Error(ErrorKind::kInternal, fmt::format("evaluate: slot {} is empty", slot));
  const int chunk = slot / array.slots_per_chunk();
  const auto all = evaluate_chunks(array, data, [&](int k) { return k == chunk; });
  std::map<std::string, double> metrics;
  if (!array.has_answers()) return metrics;
  for (const auto& [name, value] :
       all[static_cast<std::size_t>(chunk)].at(static_cast<std::size_t>(slot - array.first_slot(chunk)))) {
    metrics[prefix + name] = value;
  }
  return metrics;
}

}  // namespace hfta::fusion
