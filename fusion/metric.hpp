#pragma once
/// Metrics as data: which there are, what they take, their options, the names they are recorded under. Plain data,
/// without torch; fusion/metrics/accumulator.hpp computes them.
///
/// Names, definitions and defaults are scikit-learn's (1.9); docs/metrics.md has every definition, and what a metric
/// gives where scikit-learn warns.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hfta::fusion {

/// What a model's output means. The loss says it.
enum class OutputKind {
  kClassScores,  ///< Logits or log-probabilities [N, C, ...]; targets are class indices [N, ...].
  kLogit,        ///< Logits of yes or no [N] or [N, K, ...]; targets 0 to 1 of the same shape, yes above 0.5.
  kProbability,  ///< Probabilities of yes, of a logit's shapes; targets as for kLogit, yes above 0.5.
  kMargin,       ///< Scores of a logit's shapes, yes above 0; targets -1 and +1 of the same shape.
  kValue,        ///< Numbers to be met [N] or [N, ...]; targets of the same shape.
};

/// How a metric averages its numbers, one per class.
enum class Average {
  kMacro,     ///< The mean over classes.
  kMicro,     ///< One number from the counts of all classes together.
  kWeighted,  ///< The mean over classes, weighted by how many targets are of the class.
  kNone,      ///< No average: the number of each class.
};

[[nodiscard]] const char* name_of(OutputKind kind);  ///< "class scores", "logits", "probabilities", "margins", "values"
[[nodiscard]] const char* name_of(Average average);  ///< "macro", "micro", "weighted", "none"

/// A metric with its options. Each metric reads its own (MetricInfo::options); the others keep their defaults.
struct MetricSpec {
  std::string name = {};  ///< A row's: "top_k"
  int k = 5;
  Average average = Average::kMacro;

  bool operator==(const MetricSpec&) const = default;
};

/// One field of MetricSpec, as one metric reads it. The default is the field's.
struct MetricOption {
  const char* name;
  std::variant<int MetricSpec::*, Average MetricSpec::*> field;
  const char* sentence;                ///< Description of the option, for a reference page.
  int least = 0;                       ///< Smallest value of an option that is a number.
  std::vector<Average> averages = {};  ///< Averages that the metric has, if the option is one.
};

struct MetricInfo {
  const char* name;
  const char* sentence;                ///< Description of the metric, for a reference page.
  std::vector<OutputKind> takes = {};  ///< Kinds of outputs that it takes, in the enumeration's order.
  std::vector<MetricOption> options = {};
  /// Unset: the metric has several numbers, some of which should be large and some small (confusion_matrix).
  std::optional<bool> larger_is_better = {};
  /// Every sample's output is kept until the end of an evaluation (fusion/metrics/curves.cpp says how many bytes).
  bool keeps_outputs = false;

  [[nodiscard]] bool takes_kind(OutputKind kind) const;
};

/// All metrics besides the loss, in the order of a reference page.
[[nodiscard]] const std::vector<MetricInfo>& metrics();
/// The metric of that name; nullptr: there is none.
[[nodiscard]] const MetricInfo* find_metric(std::string_view name);
/// The metrics that are taken where a config names none.
[[nodiscard]] std::vector<MetricSpec> default_metrics(OutputKind kind);

/// The name that a value is recorded under: "accuracy", "top_5", "f1_micro"; "f1_2" for class 2 with average none;
/// "confusion_0_1" for true class 0 and predicted class 1. `indices`: index_count(spec) numbers.
[[nodiscard]] std::string recorded_name(const MetricSpec& spec, const std::vector<int>& indices = {});
[[nodiscard]] int index_count(const MetricSpec& spec);

/// How many numbers a metric may give: a confusion matrix of 64 classes.
inline constexpr std::int64_t kMostMetricValues = 4096;
/// Throws Error{kConfig} if `values` are more.
void check_value_count(const MetricSpec& spec, std::int64_t values);
/// Whether a value of that name is recorded. How many classes there are is not known here: any index is right.
[[nodiscard]] bool gives(const MetricSpec& spec, std::string_view name);

}  // namespace hfta::fusion
