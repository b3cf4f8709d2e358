#pragma once
/// How a model is trained, without the model and the data: loss, optimizer, schedule, metrics. Plain data, without
/// torch.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/formula.hpp"
#include "fusion/graph.hpp"
#include "fusion/loss.hpp"
#include "fusion/metric.hpp"
#include "fusion/optimizer.hpp"

namespace hfta::fusion {

enum class ScheduleKind { kConstant, kStep, kCosine, kLinear };

/// How precisely a float32 model is computed. Weights, gradients, optimizer state, running statistics, losses and
/// metrics are float32 in any case.
enum class Precision {
  kFloat32,
  kTf32,  ///< Products and convolutions on a GPU may round their factors to TF32; on a CPU the same as kFloat32.
  /// The forward runs as under torch.autocast(device, torch.bfloat16), without its cache. No loss is scaled: bfloat16
  /// has float32's range, so that small gradients do not vanish.
  kBfloat16,
};

[[nodiscard]] const char* name_of(ScheduleKind kind);    ///< "constant", "step", "cosine", "linear"
[[nodiscard]] const char* name_of(Precision precision);  ///< "float32", "tf32", "bfloat16"

/// Shape of the learning rate over time; all per slot. Stepped once per epoch unless per_step.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  bool per_step = false;
  double step_size = 30, gamma = 0.1;                              ///< StepLR
  double t_max = 0, eta_min = 0;                                   ///< CosineAnnealingLR; t_max 0: to training's end
  double start_factor = 1.0 / 3, end_factor = 1, total_iters = 5;  ///< LinearLR
  /// Linear warm-up in front of any of the above, in the same unit: factor from start_factor to 1 over `warmup`, then
  /// the schedule begins (torch's SequentialLR of LinearLR and the schedule) and counts its times from there. Shorter
  /// than training. 0: none.
  double warmup = 0;
};

/// The rate at time t (epochs done, or steps done if per_step), `duration` being all of training in that unit.
/// Closed forms of torch.optim.lr_scheduler; exact to 1e-14 relative for t <= duration. A cosine without its own t_max
/// reaches eta_min at `duration`, whatever the warm-up.
[[nodiscard]] double learning_rate(const Schedule& schedule, double base, double t, double duration);

/// Parameters for which the optimizer has numbers of its own (SlotHyper::groups), as torch.optim's param_groups
/// (fusion/parameter_groups.hpp).
struct ParameterGroup {
  /// Names of parameters; `*` matches anything, and a module's path all that is below it. The first group that has a
  /// parameter's name takes it.
  std::vector<std::string> params = {};
  std::string where = {};  ///< "s.yaml:12: train.optimizer.groups.0.params", for messages.
};

/// A slot's numbers of a phase.
struct PhaseHyper {
  OptimizerHyper optimizer = {};
  std::vector<OptimizerHyper> groups = {};  ///< Numbers of the phase's groups, as SlotHyper::groups.
  std::optional<double> clip_norm = {};     ///< Largest gradient norm, over the phase's parameters; as SlotHyper's.
  std::optional<double> clip_weights = {};  ///< Parameters are clamped to +-c after a step (WGAN, arXiv:1701.07875).
};

/// All parameters of a trial that affect only per-slot vectors.
struct SlotHyper {
  OptimizerHyper optimizer = {};
  /// All numbers of each of Recipe::groups, `lr` before the schedule; those left out at the end are `optimizer`.
  std::vector<OptimizerHyper> groups = {};
  Schedule schedule = {};
  std::vector<double> loss = {};         ///< LossInfo::numbers, in order; empty: their fallbacks.
  std::optional<double> clip_norm = {};  ///< Largest gradient norm, over the slot's own parameters; if Recipe::clips.
  std::vector<double> graph = {};        ///< Graph::hypers' values, in order.
  /// Batches per optimizer step, where Recipe::accumulates: the step is by sum w_j g_j / sum w_j over their gradients
  /// g_j, w_j being the batches' weights, and so by the gradient of all their samples. What is left at an epoch's end
  /// makes a step of its own.
  std::int64_t accumulate = 1;
  /// Numbers of Recipe::phases, in place of `optimizer`, `groups` and `clip_norm`.
  std::vector<PhaseHyper> phases = {};
};

/// A metric as arithmetic: a name is the sum of that output over the set (of its elements, if it is no number), mean(x)
/// its mean (by the batches' weights, if it is a number), `loss` the mean loss, `samples` their number.
struct NamedFormula {
  std::string name = {};
  Formula formula;

  bool operator==(const NamedFormula&) const = default;
};

/// One of the steps that each batch makes in turn, as those of a GAN's two networks: a loss, the parameters that it
/// trains, and their optimizer. The graph runs anew for each phase, with the same samples and the same randomness.
struct Phase {
  std::string loss = {};                 ///< An output of the model.
  std::string weight = {};               ///< Another: what its mean is divided by. Only if `weighted`.
  bool weighted = false;                 ///< Whether the loss has a weight, as LossOptions::weighted.
  std::vector<std::string> params = {};  ///< Parameters that the phase trains, as ParameterGroup::params.
  OptimizerKind optimizer = OptimizerKind::kSgd;
  std::vector<ParameterGroup> groups = {};
  std::int64_t every = 1;  ///< The phase has its turn after every so many batches of an epoch.
  std::string where = {};  ///< "s.yaml:12: train.phases.0.params", for messages.
};

/// Saved values lie encoded until the backward reads them (MemoryPolicy::kCompress): gradients are off by a share of
/// their scale, so that this is part of how a model is trained.
struct Compression {
  double sigma = 0.01;           ///< The share of the scale; 0: encoded values come back as they were.
  std::int64_t interval = 1000;  ///< Steps between two times that a slot's bounds are found anew, at most.
};

/// The settings that all trials of an array share, besides the graph.
struct Recipe {
  Loss loss = Loss::kCrossEntropy;
  LossOptions loss_options = {};
  OptimizerKind optimizer = OptimizerKind::kSgd;
  std::vector<ParameterGroup> groups = {};
  DType dtype = DType::kFloat32;
  Precision precision = Precision::kFloat32;  ///< float64 has no other.
  int batch_size = 1;
  int epochs = 1;
  std::vector<MetricSpec> metrics = {};  ///< Metrics besides the loss, which is always computed.
  /// Loss::kModel: metrics over the outputs in `terms`, which follow the loss and its weight in Graph::outputs.
  std::vector<NamedFormula> formulas = {};
  std::vector<std::string> terms = {};
  /// None: one phase, of `loss`, `optimizer` and `groups`, which trains all parameters. Otherwise `loss` is kModel;
  /// each phase's loss, and its weight if it is weighted, stand in Graph::outputs, the first phase's before the terms,
  /// the others' behind them. Gradients are not accumulated then.
  std::vector<Phase> phases = {};
  bool accumulates = false;  ///< Whether slots keep sums of gradients, for SlotHyper::accumulate.
  /// Whether slots may have clip_norm. Where none has, a gradient may be applied before the others are there.
  bool clips = true;
  std::optional<Compression> compression = {};  ///< None: values are kept, or computed again, to the same bits.
};

}  // namespace hfta::fusion
