// Losses of two classes, for every element of the output by itself: targets of the output's shape.
#include "fusion/recipe/losses/rows.hpp"

namespace hfta::fusion {
namespace {

ValueId with_logits(const LossSite& site, Reduction reduction) {
  const Arg positive = site.pos_weight == kNoValue ? Arg() : Arg(site.pos_weight);
  return loss_call(site, "binary_cross_entropy_with_logits",
                   {site.output, site.target, Arg(), positive, to_arg(reduction)}, reduction);
}

ValueId of_probabilities(const LossSite& site, Reduction reduction) {
  return loss_call(site, "binary_cross_entropy", {site.output, site.target, Arg(), to_arg(reduction)}, reduction);
}

// a b + (1 - a)(1 - b)
ValueId agreement(GraphWriter& g, ValueId a, ValueId b) {
  const ValueId both = g.map("mul.Tensor", {a, b});
  const ValueId neither = g.map("mul.Tensor", {g.map("rsub.Scalar", {a, 1.0}), g.map("rsub.Scalar", {b, 1.0})});
  return g.map("add.Tensor", {both, neither});
}

// Lin et al., "Focal Loss for Dense Object Detection" (ICCV 2017), eq. 5; torchvision's sigmoid_focal_loss.
ValueId focal(const LossSite& site, Reduction reduction) {
  GraphWriter& g = site.graph;
  const ValueId plain = with_logits(site, Reduction::kNone);
  const ValueId right = agreement(g, g.map("sigmoid", {site.output}), site.target);
  // Kept off 0, where the slope of a power below 1 is infinite.
  const ValueId rest = g.map("clamp_min", {g.map("rsub.Scalar", {right, 1.0}), 1e-12});
  const ValueId wrong = g.map("pow.Tensor_Scalar", {rest, site.numbers.at(0)});
  const ValueId each = g.map("mul.Tensor", {plain, wrong});
  // alpha t + (1 - alpha)(1 - t) = (1 - t) + alpha (2 t - 1)
  const ValueId sign = g.map("sub.Scalar", {g.map("mul.Scalar", {site.target, 2.0}), 1.0});
  const ValueId balance =
      g.map("add.Tensor", {g.map("mul.Scalar", {sign, site.numbers.at(1)}), g.map("rsub.Scalar", {site.target, 1.0})});
  return reduced(g, g.map("mul.Tensor", {each, balance}), reduction);
}

// max(0, 1 - t y)
ValueId hinge(const LossSite& site, Reduction reduction) {
  GraphWriter& g = site.graph;
  const ValueId margin = g.map("mul.Tensor", {site.output, site.target});
  return reduced(g, g.map("relu", {g.map("rsub.Scalar", {margin, 1.0})}), reduction);
}

ValueId soft_margin(const LossSite& site, Reduction reduction) {
  return loss_call(site, "soft_margin_loss", {site.output, site.target, to_arg(reduction)}, reduction);
}

}  // namespace

std::vector<LossRow> binary_losses() {
  return {{{.kind = Loss::kBceWithLogits,
            .name = "bce_with_logits",
            .sentence = "logits; torch's binary_cross_entropy_with_logits",
            .targets = Targets::kProbabilities,
            .output = OutputKind::kLogit,
            .numbers = {},
            .options = {"pos_weight"}},
           with_logits},
          {{.kind = Loss::kBce,
            .name = "bce",
            .sentence = "probabilities; torch's binary_cross_entropy",
            .targets = Targets::kProbabilities,
            .output = OutputKind::kProbability,
            .numbers = {},
            .options = {}},
           of_probabilities},
          {{.kind = Loss::kSigmoidFocal,
            .name = "sigmoid_focal",
            .sentence = "logits; torchvision's sigmoid_focal_loss, averaged (Lin et al., ICCV 2017)",
            .targets = Targets::kProbabilities,
            .output = OutputKind::kLogit,
            .numbers = {{.name = "gamma",
                         .fallback = 2,
                         .most = 100,
                         .sentence = "How much less the samples count that are classified well. 0: cross_entropy."},
                        {.name = "alpha",
                         .fallback = 0.25,
                         .most = 1,
                         .sentence = "Weight of the positive class; the negative one has 1 - alpha."}},
            .options = {}},
           focal},
          {{.kind = Loss::kHinge,
            .name = "hinge",
            .sentence = "max(0, 1 - target output), targets -1 and 1; scikit-learn's hinge_loss",
            .targets = Targets::kSigns,
            .output = OutputKind::kMargin,
            .numbers = {},
            .options = {}},
           hinge},
          {{.kind = Loss::kSoftMargin,
            .name = "soft_margin",
            .sentence = "torch's soft_margin_loss, targets -1 and 1",
            .targets = Targets::kSigns,
            .output = OutputKind::kMargin,
            .numbers = {},
            .options = {}},
           soft_margin}};
}

}  // namespace hfta::fusion
