#pragma once
/// The losses that training can minimize: one table. A built-in loss becomes calls at the end of the model's graph
/// (fusion/task_graph.hpp), so every way to run a model runs its loss. Without torch.

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/metric.hpp"

namespace hfta::fusion {

enum class Loss {
  kCrossEntropy,
  kNll,
  kFocal,
  kSoftCrossEntropy,
  kMse,
  kL1,
  kHuber,
  kSmoothL1,
  kQuantile,
  kPoissonNll,
  kKlDiv,
  kBceWithLogits,
  kBce,
  kSigmoidFocal,
  kHinge,
  kSoftMargin,
  kModel,  ///< An output of the model is the loss.
};

/// What a loss compares the model's output with.
enum class Targets {
  kNone,           ///< Nothing: labels, if any, are inputs of the model.
  kClasses,        ///< Classes [N, ...], int64, of an output [N, C, ...].
  kValues,         ///< Numbers of the output's shape.
  kDistributions,  ///< Probabilities of classes, of an output [N, C, ...] and of its shape.
  kProbabilities,  ///< Numbers of the output's shape, from 0 to 1.
  kCounts,         ///< Numbers of the output's shape, from 0 on.
  kSigns,          ///< Numbers of the output's shape, -1 or 1.
};

inline constexpr double kNoBound = std::numeric_limits<double>::infinity();

/// A number of a loss that may differ between slots.
struct LossNumber {
  std::string_view name;  ///< Name in the config: "label_smoothing".
  double fallback = 0;
  double least = 0, most = 0;
  bool least_allowed = true, most_allowed = true;
  /// Evaluation uses this value instead: what is a means of training would make slots incomparable. Unset: the slot's.
  std::optional<double> evaluation = std::nullopt;
  std::string_view sentence;
};

/// Options that all slots share; a loss reads those that its row lists.
struct LossOptions {
  std::int64_t ignore_index = -100;       ///< Positions of this class do not count.
  std::vector<double> class_weight = {};  ///< By class; empty: all 1.
  int class_dim = 1;                      ///< The output's dimension of classes: 1, or -1, the last.
  std::vector<double> pos_weight = {};    ///< One number, or one for each of the output's last dimension; empty: 1.
  bool log_input = true;                  ///< poisson_nll: the output is the logarithm of the rate.
  bool log_target = false;                ///< kl_div: the targets are logarithms.
  bool weighted = false;                  ///< kModel: the second of Graph::outputs is the batch's weight.

  bool operator==(const LossOptions&) const = default;
};

/// A row of the table.
struct LossInfo {
  Loss kind;
  std::string_view name;      ///< "cross_entropy"
  std::string_view sentence;  ///< What the loss is, and which of PyTorch's functions it equals.
  Targets targets;
  std::optional<OutputKind> output = {};       ///< What the output means to metrics; none: no metric goes with it.
  std::vector<LossNumber> numbers = {};        ///< Numbers that the loss takes, in the order of SlotHyper::loss.
  std::vector<std::string_view> options = {};  ///< Names of the fields of LossOptions that it reads.
};

/// All rows of the table, in the order of `Loss`.
[[nodiscard]] std::span<const LossInfo> losses();
[[nodiscard]] const LossInfo& info_of(Loss loss);
[[nodiscard]] const char* name_of(Loss loss);

}  // namespace hfta::fusion
