#include "fusion/training/evaluation_sums.hpp"

#include <ATen/ATen.h>

#include <algorithm>

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

// A built-in loss gives every element's; a model's own may be the batch's mean.
void EvaluationSums::add_loss(const Outputs& batch) {
  const at::Tensor each = batch.loss.dim() > 1 ? batch.loss.flatten(1).mean(1) : batch.loss;
  if (!batch.weight.defined()) {
    const auto samples = static_cast<double>(batch.samples);
    accumulate(loss_, each * samples);
    accumulate(weight_, at::full_like(each, samples));
    return;
  }
  const at::Tensor total = per_slot(batch.weight);
  accumulate(weight_, total);
  if (recipe_.loss != Loss::kModel) {
    accumulate(loss_, per_slot(batch.loss));
    return;
  }
  const bool by_element = batch.loss.dim() > 1 && batch.loss.sizes() == batch.weight.sizes();
  const at::Tensor sum = by_element ? per_slot(batch.loss * batch.weight) : each * total;
  accumulate(loss_, at::where(total.eq(0), 0.0, sum));
}

void EvaluationSums::add_terms(const Outputs& batch) {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const at::Tensor& value = batch.terms[i];
    const at::Tensor sum = per_slot(value);
    accumulate(terms_[i].sum, sum);
    if (value.dim() > 1) {  // a value of every sample or element
      accumulate(terms_[i].weighted, sum);
      accumulate(terms_[i].weight, at::full_like(sum, static_cast<double>(value.numel() / value.size(0))));
      continue;
    }
    const at::Tensor own =
        batch.weight.defined() ? per_slot(batch.weight) : at::full_like(sum, static_cast<double>(batch.samples));
    accumulate(terms_[i].weighted, at::where(own.eq(0), 0.0, sum * own));
    accumulate(terms_[i].weight, own);
  }
}

void EvaluationSums::add(const std::vector<at::Tensor>& outputs, const at::Tensor& target, std::int64_t n,
                         std::int64_t filled) {
  const auto counted = [&](std::size_t i) {
    const at::Tensor wide = slots_ > 0 ? outputs.at(i) : outputs.at(i).unsqueeze(0);
    const bool padded = filled > n && wide.dim() > 1 && wide.size(1) == filled;
    return padded ? wide.narrow(1, 0, n) : wide;
  };
  const auto exact = [&](std::size_t i) { return counted(i).to(at::kDouble); };
  const bool own = recipe_.loss == Loss::kModel;
  const std::size_t loss = own ? 0 : 1;  // a built-in loss follows the output that it took
  const bool weighted = outputs.size() > loss + 1 + terms_.size();
  Outputs batch{{}, exact(loss), weighted ? exact(loss + 1) : at::Tensor(), n};
  for (std::size_t i = 0; i < terms_.size(); ++i) batch.terms.push_back(exact(loss + (weighted ? 2 : 1) + i));
  add_loss(batch);
  add_terms(batch);
  samples_ += n;
  if (!metrics_) return;
  const at::Tensor output = slots_ > 0 ? counted(0) : counted(0).squeeze(0);
  metrics_->add(output, slots_ > 0 ? with_slots(target, slots_) : target);
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
  std::vector<std::map<std::string, double>> all(static_cast<std::size_t>(mean.numel()));
  if (metrics_) all = metrics_->result();
  for (std::size_t b = 0; b < all.size(); ++b) all[b]["loss"] = mean.const_data_ptr<double>()[b];
  add_formulas(all, mean);
  return all;
}

}  // namespace hfta::fusion
