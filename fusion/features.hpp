#pragma once
/// Features of samples: what a model's frozen prefix (fusion/frozen_prefix.hpp) makes of them, computed when they are
/// first asked for, and kept for whoever asks again, as far as there is room.
///
/// The bits of a sample's features depend on nothing but the set that it is in. The prefix runs with blocks of
/// SplitModel::block consecutive samples of the set, as the set has them, by one thread of LibTorch: never with the
/// batch of a step, since products of other sizes round otherwise. A last block is filled up with its last sample.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fusion/frozen_prefix.hpp"
#include "fusion/samples.hpp"

namespace hfta::fusion {

/// Counts of what was done for a set.
struct FeatureCounts {
  std::int64_t samples = 0;     ///< Samples of the set.
  std::int64_t kept = 0;        ///< Samples whose features are kept once they are computed: the first of the set.
  std::int64_t computed = 0;    ///< Samples that went through the prefix so far, with those that went again.
  std::int64_t kept_bytes = 0;  ///< Room that is taken, whether it is filled yet or not.
};

/// A prefix that is ready to run on a CPU.
class FeatureModel {
 public:
  /// `threads`: blocks that are computed side by side. Throws Error{kConfig} naming an op that cannot be run.
  FeatureModel(std::shared_ptr<const SplitModel> split, int threads);
  ~FeatureModel();
  FeatureModel(const FeatureModel&) = delete;
  FeatureModel& operator=(const FeatureModel&) = delete;

  [[nodiscard]] const SplitModel& split() const;
  /// Bytes of the frozen weights that it holds.
  [[nodiscard]] std::int64_t weight_bytes() const;

 private:
  friend class FeatureSet;
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Bytes that keeping the features of so many samples takes; the largest number where 64 bits do not hold them.
[[nodiscard]] std::int64_t kept_bytes(const SplitModel& split, std::int64_t samples);

/// The features of one set of samples.
class FeatureSet final : public SampleSource {
 public:
  /// `inputs`: inputs of the whole model, on a CPU. `room`: bytes that may be kept.
  FeatureSet(std::shared_ptr<FeatureModel> model, std::span<const SampleArray> inputs, std::int64_t size,
             std::int64_t room);
  ~FeatureSet() override;

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] std::int64_t stride(std::size_t column) const override;
  [[nodiscard]] at::ScalarType type(std::size_t column) const override;
  [[nodiscard]] std::vector<at::Tensor> rows(const at::Tensor& index) const override;
  [[nodiscard]] at::Tensor all(std::size_t column) const override;
  [[nodiscard]] FeatureCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The inputs of SplitModel::rest for a set: its features, then those of the model's inputs that it reads besides.
[[nodiscard]] std::vector<SampleArray> rest_inputs(const SplitModel& split, std::span<const SampleArray> inputs,
                                                   const std::shared_ptr<const FeatureSet>& features);

}  // namespace hfta::fusion
