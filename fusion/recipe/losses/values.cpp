// Losses of numbers: targets of the output's shape.
#include "fusion/recipe/losses/rows.hpp"

namespace hfta::fusion {
namespace {

ValueId mse(const LossSite& site, Reduction reduction) {
  return loss_call(site, "mse_loss", {site.output, site.target, to_arg(reduction)}, reduction);
}

ValueId l1(const LossSite& site, Reduction reduction) {
  return loss_call(site, "l1_loss", {site.output, site.target, to_arg(reduction)}, reduction);
}

ValueId huber(const LossSite& site, Reduction reduction) {
  return loss_call(site, "huber_loss", {site.output, site.target, to_arg(reduction), site.numbers.at(0)}, reduction);
}

ValueId smooth_l1(const LossSite& site, Reduction reduction) {
  return loss_call(site, "smooth_l1_loss", {site.output, site.target, to_arg(reduction), site.numbers.at(0)},
                   reduction);
}

// max(q d, (q - 1) d) = q d + max(-d, 0), d being target - output (Koenker and Bassett, Econometrica 1978).
ValueId quantile(const LossSite& site, Reduction reduction) {
  GraphWriter& g = site.graph;
  const ValueId above = g.map("sub.Tensor", {site.output, site.target});
  const ValueId share = g.map("mul.Scalar", {g.map("neg", {above}), site.numbers.at(0)});
  return reduced(g, g.map("add.Tensor", {share, g.map("relu", {above})}), reduction);
}

// exp(y) - t y, or y - t log(y + eps).
ValueId poisson_nll(const LossSite& site, Reduction reduction) {
  GraphWriter& g = site.graph;
  const bool log = site.options.log_input;
  const ValueId y = site.output;
  const ValueId rate = log ? g.map("exp", {y}) : y;
  const ValueId exponent = log ? y : g.map("log", {g.map("add.Scalar", {y, 1e-8})});
  const ValueId product = g.map("mul.Tensor", {exponent, site.target});
  return reduced(g, g.map("sub.Tensor", {rate, product}), reduction);
}

ValueId kl_div(const LossSite& site, Reduction reduction) {
  return loss_call(site, "kl_div", {site.output, site.target, to_arg(reduction), site.options.log_target}, reduction);
}

}  // namespace

std::vector<LossRow> value_losses() {
  return {
      {{.kind = Loss::kMse,
        .name = "mse",
        .sentence = "torch's mse_loss",
        .targets = Targets::kValues,
        .output = OutputKind::kValue,
        .numbers = {},
        .options = {}},
       mse},
      {{.kind = Loss::kL1,
        .name = "l1",
        .sentence = "torch's l1_loss",
        .targets = Targets::kValues,
        .output = OutputKind::kValue,
        .numbers = {},
        .options = {}},
       l1},
      {{.kind = Loss::kHuber,
        .name = "huber",
        .sentence = "torch's huber_loss",
        .targets = Targets::kValues,
        .output = OutputKind::kValue,
        .numbers = {{.name = "delta",
                     .fallback = 1,
                     .most = kNoBound,
                     .least_allowed = false,
                     .sentence = "Where the loss turns from quadratic to linear."}},
        .options = {}},
       huber},
      {{.kind = Loss::kSmoothL1,
        .name = "smooth_l1",
        .sentence = "torch's smooth_l1_loss",
        .targets = Targets::kValues,
        .output = OutputKind::kValue,
        .numbers = {{.name = "beta",
                     .fallback = 1,
                     .most = kNoBound,
                     .sentence = "Where the loss turns from quadratic to linear. 0: l1."}},
        .options = {}},
       smooth_l1},
      {{.kind = Loss::kQuantile,
        .name = "quantile",
        .sentence = "the pinball loss, max(q d, (q - 1) d) of d = target - output; scikit-learn's mean_pinball_loss",
        .targets = Targets::kValues,
        .output = OutputKind::kValue,
        .numbers = {{.name = "quantile", .fallback = 0.5, .most = 1, .sentence = "q, from 0 to 1."}},
        .options = {}},
       quantile},
      {{.kind = Loss::kPoissonNll,
        .name = "poisson_nll",
        .sentence = "torch's poisson_nll_loss; the output is the logarithm of the rate",
        .targets = Targets::kCounts,
        .output = std::nullopt,
        .numbers = {},
        .options = {"log_input"}},
       poisson_nll},
      {{.kind = Loss::kKlDiv,
        .name = "kl_div",
        .sentence = "log-probabilities and probabilities; torch's kl_div, averaged over all elements",
        .targets = Targets::kValues,
        .output = std::nullopt,
        .numbers = {},
        .options = {"log_target"}},
       kl_div}};
}

}  // namespace hfta::fusion
