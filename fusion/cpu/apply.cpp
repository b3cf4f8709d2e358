#include "fusion/cpu/apply.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace hfta::fusion::cpu {
namespace {

std::int64_t bytes_of(const Tensor& t) { return t.numel() * size_of(t.dtype); }

// By buffer: the last step that touches it.
std::map<int, std::size_t> last_uses(const std::vector<Step>& steps, std::span<const Tensor> outputs) {
  std::map<int, std::size_t> last;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    for (const int buffer : steps[k].buffers) last[buffer] = k;
  }
  for (const Tensor& output : outputs) last[output.buffer] = steps.size() - 1;
  return last;
}

Step applying(std::vector<WeightGradient> gradients, std::span<const Tensor> weights) {
  // The order in which weights and states lie in memory is faster to read.
  std::stable_sort(gradients.begin(), gradients.end(),
                   [](const WeightGradient& a, const WeightGradient& b) { return a.weight < b.weight; });
  Step step;
  step.info.op = "optimizer";
  step.info.backward = true;
  for (const WeightGradient& one : gradients) {
    step.buffers.push_back(one.tensor.buffer);
    step.buffers.push_back(weights[one.weight].buffer);
    step.info.bytes += bytes_of(one.tensor);
    step.info.sizes.push_back(one.tensor.sizes);
  }
  step.kernel = [all = std::move(gradients)](const Run& run) { (*run.apply)(run, all); };
  return step;
}

}  // namespace

void apply_gradients(Recomputing& all, std::span<const WeightGradient> gradients, std::span<const Tensor> weights,
                     std::span<const Tensor> outputs, std::int64_t bytes) {
  std::vector<Step>& steps = all.schedule.steps;
  const std::map<int, std::size_t> last = last_uses(steps, outputs);
  std::vector<std::vector<WeightGradient>> behind(steps.size());
  for (const WeightGradient& one : gradients) {
    behind[std::max(last.at(one.tensor.buffer), last.at(weights[one.weight].buffer))].push_back(one);
  }
  std::vector<Step> with;
  std::vector<std::size_t> moved;  // by step: where it is
  std::vector<WeightGradient> waiting;
  std::int64_t together = 0;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    moved.push_back(with.size());
    with.push_back(std::move(steps[k]));
    for (const WeightGradient& one : behind[k]) {
      waiting.push_back(one);
      together += bytes_of(one.tensor);
    }
    if (waiting.empty() || (together < bytes && k + 1 < steps.size())) continue;
    with.push_back(applying(std::exchange(waiting, {}), weights));
    together = 0;
  }
  steps = std::move(with);
  for (Recomputing::Brought& one : all.brought) one.step = moved[one.step];
}

}  // namespace hfta::fusion::cpu
