// Losses of classes: output [N, C, ...], targets [N, ...].
#include "fusion/recipe/losses/rows.hpp"

namespace hfta::fusion {
namespace {

Arg or_none(ValueId id) { return id == kNoValue ? Arg() : Arg(id); }

ValueId cross_entropy_by(const LossSite& site, Reduction reduction, const Arg& smoothing, ValueId weight) {
  return loss_call(site, "cross_entropy_loss",
                   {site.output, site.target, or_none(weight), to_arg(reduction), site.options.ignore_index, smoothing},
                   reduction);
}

ValueId cross_entropy(const LossSite& site, Reduction reduction) {
  return cross_entropy_by(site, reduction, site.numbers.at(0), site.class_weight);
}

ValueId nll(const LossSite& site, Reduction reduction) {
  return loss_call(site, "nll_loss_nd",
                   {site.output, site.target, or_none(site.class_weight), to_arg(reduction), site.options.ignore_index},
                   reduction);
}

// (1 - p)^gamma times the cross entropy, p being the target's probability: Lin et al., "Focal Loss for Dense Object
// Detection" (ICCV 2017), eq. 5, for softmax instead of sigmoid; alpha is the class weight.
ValueId focal(const LossSite& site, Reduction reduction) {
  GraphWriter& g = site.graph;
  const ValueId plain = cross_entropy_by(site, Reduction::kNone, 0.0, kNoValue);  // -log p
  // 1 - p = -expm1(log p), kept off 0, where the slope of a power below 1 is infinite.
  const ValueId rest = g.map("clamp_min", {g.map("neg", {g.map("expm1", {g.map("neg", {plain})})}), 1e-12});
  const ValueId each = g.map("mul.Tensor", {g.map("pow.Tensor_Scalar", {rest, site.numbers.at(0)}), plain});
  const ValueId weighted = g.map("mul.Tensor", {each, site.position_weight});
  if (reduction == Reduction::kNone) return weighted;
  return weighted_mean(g, weighted, reduced(g, site.position_weight, Reduction::kSum));
}

// -sum over classes of t log p, t being the target's probability e of the way towards 1 / C.
ValueId soft_cross_entropy(const LossSite& site, Reduction reduction) {
  GraphWriter& g = site.graph;
  Shape positions = g.shape(site.output);
  const double even = 1 / static_cast<double>(positions.at(1));
  positions.erase(positions.begin() + 1);
  const ValueId away = g.map("add.Scalar", {g.map("neg", {site.target}), even});
  const ValueId smoothed = g.map("add.Tensor", {site.target, g.map("mul.Scalar", {away, site.numbers.at(0)})});
  const ValueId log_p = g.map("log_softmax.int", {site.output, std::int64_t{1}, Arg()});
  const ValueId each =
      g.call("sum.dim_IntList", {g.map("mul.Tensor", {smoothed, log_p}), std::vector<std::int64_t>{1}, false, Arg()},
             std::move(positions));
  return reduced(g, g.map("neg", {each}), reduction);
}

constexpr LossNumber kLabelSmoothing = {
    .name = "label_smoothing", .most = 1, .evaluation = 0, .sentence = "As in PyTorch. Evaluation goes without."};

}  // namespace

std::vector<LossRow> class_losses() {
  return {{{.kind = Loss::kCrossEntropy,
            .name = "cross_entropy",
            .sentence = "logits and classes; torch's cross_entropy",
            .targets = Targets::kClasses,
            .output = OutputKind::kClassScores,
            .numbers = {kLabelSmoothing},
            .options = {"ignore_index", "class_weight", "class_dim"}},
           cross_entropy},
          {{.kind = Loss::kNll,
            .name = "nll",
            .sentence = "log-probabilities and classes; torch's nll_loss",
            .targets = Targets::kClasses,
            .output = OutputKind::kClassScores,
            .numbers = {},
            .options = {"ignore_index", "class_weight", "class_dim"}},
           nll},
          {{.kind = Loss::kFocal,
            .name = "focal",
            .sentence = "logits and classes; cross_entropy times (1 - p)^gamma (Lin et al., ICCV 2017)",
            .targets = Targets::kClasses,
            .output = OutputKind::kClassScores,
            .numbers = {{.name = "gamma",
                         .fallback = 2,
                         .most = 100,
                         .sentence = "How much less the samples count that are classified well. 0: cross_entropy."}},
            .options = {"ignore_index", "class_weight", "class_dim"}},
           focal},
          {{.kind = Loss::kSoftCrossEntropy,
            .name = "soft_cross_entropy",
            .sentence = "logits and probabilities of classes, of the same shape; torch's cross_entropy of such targets",
            .targets = Targets::kDistributions,
            .output = std::nullopt,
            .numbers = {kLabelSmoothing},
            .options = {}},
           soft_cross_entropy}};
}

}  // namespace hfta::fusion
