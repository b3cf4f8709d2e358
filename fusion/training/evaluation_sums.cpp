#include "fusion/training/evaluation_sums.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include "fusion/eager/layout.hpp"

namespace hfta::fusion {
namespace {

// Sum over everything but the leading slot dimension.
at::Tensor per_slot(const at::Tensor& t) { return t.dim() > 1 ? t.flatten(1).sum(1) : t; }

void accumulate(at::Tensor& sum, const at::Tensor& part) { sum = sum.defined() ? sum + part : part; }

}  // namespace

EvaluationSums::EvaluationSums(const Recipe& recipe, int slots)
    : recipe_(recipe), slots_(slots), terms_(recipe.terms.size()) {
  const std::optional<OutputKind> kind = info_of(recipe.loss).output;
  if (kind && !recipe.metrics.empty()) {
    metrics_.emplace(recipe.metrics, *kind, slots, recipe.loss_options.ignore_index);
  }
}

// [c, ...] in float64, without the samples that a batch was filled up with.
at::Tensor EvaluationSums::counted(const at::Tensor& output, std::int64_t n) const {
  const at::Tensor wide = slots_ > 0 ? output : output.unsqueeze(0);
  return (wide.dim() > 1 ? wide.narrow(1, 0, std::min(n, wide.size(1))) : wide).to(at::kDouble);
}

// A built-in loss gives every element's; a model's own may be the batch's mean.
void EvaluationSums::add_loss(const at::Tensor& loss, const at::Tensor& weight, std::int64_t n) {
  if (!weight.defined()) {
    accumulate(loss_,
               loss.dim() > 1 ? loss.flatten(1).mean(1) * static_cast<double>(n) : loss * static_cast<double>(n));
    accumulate(weight_, at::full_like(loss_, static_cast<double>(n)));
    return;
  }
  const at::Tensor total = per_slot(weight);
  accumulate(weight_, total);
  if (recipe_.loss != Loss::kModel) {
    accumulate(loss_, per_slot(loss));
    return;
  }
  const at::Tensor sum = loss.sizes() == weight.sizes() && loss.dim() > 1
                             ? per_slot(loss * weight)
                             : (loss.dim() > 1 ? loss.flatten(1).mean(1) : loss) * total;
  accumulate(loss_, at::where(total.eq(0), 0.0, sum));
}

void EvaluationSums::add(const std::vector<at::Tensor>& outputs, const at::Tensor& target, std::int64_t n) {
  const bool own = recipe_.loss == Loss::kModel;
  const std::size_t loss = own ? 0 : 1;
  const bool weighted = own ? recipe_.loss_options.weighted : outputs.size() > 2;
  const at::Tensor weight = weighted ? counted(outputs.at(loss + 1), n) : at::Tensor();
  add_loss(counted(outputs.at(loss), n), weight, n);
  samples_ += n;
  if (own) return add_terms(outputs, weighted ? 2 : 1, weight, n);
  if (!metrics_) return;
  const at::Tensor output = outputs.front().narrow(slots_ > 0 ? 1 : 0, 0, n);
  metrics_->add(output, slots_ > 0 ? with_slots(target, slots_) : target);
}

void EvaluationSums::add_terms(const std::vector<at::Tensor>& outputs, std::size_t first, const at::Tensor& weight,
                               std::int64_t n) {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const at::Tensor value = counted(outputs.at(first + i), n), sum = per_slot(value);
    accumulate(terms_[i].sum, sum);
    if (value.dim() > 1) {  // of every sample or element
      accumulate(terms_[i].weighted, sum);
      accumulate(terms_[i].weight, at::full_like(sum, static_cast<double>(value.numel() / value.size(0))));
      continue;
    }
    const at::Tensor own = weight.defined() ? per_slot(weight) : at::full_like(sum, static_cast<double>(n));
    accumulate(terms_[i].weighted, at::where(own.eq(0), 0.0, sum * own));
    accumulate(terms_[i].weight, own);
  }
}

void EvaluationSums::add_formulas(std::vector<std::map<std::string, double>>& all, const at::Tensor& mean) const {
  std::vector<at::Tensor> sums, means;
  for (const Term& term : terms_) {
    sums.push_back(term.sum.cpu().contiguous());
    means.push_back((term.weighted / term.weight).cpu().contiguous());
  }
  const auto find = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(recipe_.terms.begin(), recipe_.terms.end(), name) -
                                    recipe_.terms.begin());
  };
  for (std::size_t b = 0; b < all.size(); ++b) {
    const auto value_of = [&](const Formula::Term& term) {
      if (!term.mean && term.name == "loss") return mean.const_data_ptr<double>()[b];
      if (!term.mean && term.name == "samples") return static_cast<double>(samples_);
      return (term.mean ? means : sums)[find(term.name)].const_data_ptr<double>()[b];
    };
    for (const NamedFormula& metric : recipe_.formulas) all[b][metric.name] = metric.formula.value(value_of);
  }
}

std::vector<std::map<std::string, double>> EvaluationSums::result() const {
  const at::Tensor mean = (loss_ / weight_).cpu().contiguous();
  const std::span<const double> losses(mean.const_data_ptr<double>(), static_cast<std::size_t>(mean.numel()));
  std::vector<std::map<std::string, double>> all(losses.size());
  if (metrics_) all = metrics_->result(losses);
  for (std::size_t b = 0; b < all.size(); ++b) all[b]["loss"] = mean.const_data_ptr<double>()[b];
  add_formulas(all, mean);
  return all;
}

}  // namespace hfta::fusion
