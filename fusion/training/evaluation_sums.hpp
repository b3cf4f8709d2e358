#pragma once
/// From the outputs of evaluation, batch by batch, to the metrics of a whole set.

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

  /// `outputs`: of Array::evaluate, [c, M, ...] or [M, ...]; of samples, the first n count. `target`: [n, ...];
  /// undefined if the loss is the model's.
  void add(const std::vector<at::Tensor>& outputs, const at::Tensor& target, std::int64_t n);
  /// Per slot, by name without prefix: "loss" and the recipe's metrics. Waits for the device.
  [[nodiscard]] std::vector<std::map<std::string, double>> result() const;

 private:
  [[nodiscard]] at::Tensor counted(const at::Tensor& output, std::int64_t n) const;
  void add_loss(const at::Tensor& loss, const at::Tensor& weight, std::int64_t n);
  void add_terms(const std::vector<at::Tensor>& outputs, std::size_t first, const at::Tensor& weight, std::int64_t n);
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
