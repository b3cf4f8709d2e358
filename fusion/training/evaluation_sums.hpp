#pragma once
/// Sums outputs of evaluation, batch by batch, up to the metrics of a whole set.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fusion/metrics/accumulator.hpp"
#include "fusion/recipe.hpp"

namespace hfta::fusion {

/// Sums of one chunk over a set.
class EvaluationSums {
 public:
  /// `slots`: c, or 0 for one slot without a slot dimension.
  EvaluationSums(const Recipe& recipe, int slots);

  /// `outputs`: of Array::evaluate for a batch that was filled up to `filled` samples, of which the first n count.
  /// `target`: [n, ...]; undefined if the loss is the model's.
  void add(const std::vector<at::Tensor>& outputs, const at::Tensor& target, std::int64_t n, std::int64_t filled);
  /// Per slot, by name without prefix: "loss" and the recipe's metrics. Waits for the device.
  [[nodiscard]] std::vector<std::map<std::string, double>> result() const;

 private:
  /// Tensors of a batch that add() sums: [c, ...] in float64.
  struct Outputs {
    std::vector<at::Tensor> terms;
    at::Tensor loss, weight;  ///< No weight: the samples count alike.
    std::int64_t samples = 0;
  };
  void add_loss(const Outputs& batch);
  void add_terms(const Outputs& batch);
  void add_formulas(std::vector<std::map<std::string, double>>& all, const at::Tensor& mean) const;

  Recipe recipe_;
  int slots_;
  std::optional<MetricAccumulator> metrics_;  // none: the recipe has none of them
  // All [max(c, 1)], float64.
  at::Tensor loss_, weight_;
  struct Term {
    at::Tensor sum, weighted, weight;  // the output's sum; sums for its mean
  };
  std::vector<Term> terms_;  // Recipe::terms
  std::int64_t samples_ = 0;
};

}  // namespace hfta::fusion
