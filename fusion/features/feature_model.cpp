#include "fusion/features/feature_model.hpp"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <utility>

#include "base/error.hpp"
#include "fusion/eager/run_numbers.hpp"
#include "fusion/passes/schema.hpp"
#include "fusion/passes/specialize.hpp"
#include "fusion/slots/first_values.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

SpecializedGraph reading_of(const Graph& prefix) {
  return specialized(with_complete_arguments(prefix), Purpose::kEvaluation);
}

}  // namespace

FeatureModel::Impl::Impl(std::shared_ptr<const SplitModel> model, int threads)
    : split(std::move(model)),
      program_(reading_of(split->prefix), std::vector<bool>(split->prefix.weights.size(), false), {}, at::kCPU),
      threads_(threads, 1) {
  for (const Weight& weight : split->prefix.weights) {  // stored, zeros or ones: nothing is drawn, nothing padded
    weights.push_back(first_values(weight, CountedRandom(0, Stream::kInit, 0, 0), {}).to(scalar_type(weight.dtype)));
  }
}

std::vector<at::Tensor> FeatureModel::Impl::run(const Samples& samples) const {
  const at::NoGradGuard no_gradients;
  const Graph& prefix = split->prefix;
  const std::vector<at::Tensor> inputs =
      inputs_of(samples, prefix, [&](const SampleArray& all) { return samples.of(all); });
  const ValueEnv shared = program_.share(inputs, weights);
  const ValueEnv* const one = &shared;
  const HostNumbers none;
  std::vector<at::Tensor> features = program_.run({&one, 1}, weights, RunContext{0, none, at::kCPU});
  for (std::size_t f = 0; f < features.size(); ++f) {
    const Value& declared = prefix.values[static_cast<std::size_t>(prefix.outputs[f])];
    std::vector<std::int64_t> wanted(declared.shape.begin(), declared.shape.end());
    wanted.front() = split->block;
    if (features[f].sizes() != at::IntArrayRef(wanted) || features[f].scalar_type() != scalar_type(declared.dtype)) {
      throw Error(
          ErrorKind::kConfig,
          fmt::format("model: found a frozen layer's result of {} {} for {} samples, wanted {} {} as the model's "
                      "file says",
                      c10::toString(features[f].scalar_type()), to_text(features[f].sizes().vec()), split->block,
                      name_of(declared.dtype), to_text(wanted)));
    }
    features[f] = features[f].contiguous();
  }
  return features;
}

FeatureModel::FeatureModel(std::shared_ptr<const SplitModel> split, int threads)
    : impl_(std::make_unique<Impl>(std::move(split), threads)) {}
FeatureModel::~FeatureModel() = default;

const SplitModel& FeatureModel::split() const { return *impl_->split; }

std::int64_t FeatureModel::weight_bytes() const {
  std::int64_t bytes = 0;
  for (const at::Tensor& weight : impl_->weights) bytes += static_cast<std::int64_t>(weight.nbytes());
  return bytes;
}

}  // namespace hfta::fusion
