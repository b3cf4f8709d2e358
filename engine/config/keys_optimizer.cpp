#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/text.hpp"
#include "engine/config/key_tables.hpp"
#include "fusion/optimizer.hpp"

namespace hfta::engine::configuration {

namespace {

const std::string kOptimizer = "train.optimizer";

std::string default_text(const fusion::HyperField& field, double value) {
  if (std::holds_alternative<bool fusion::OptimizerHyper::*>(field.field)) return value != 0 ? "true" : "false";
  return shortest(value);
}

// The default of the first kind that has the number, and the kinds whose default is another: "0; adamw: 0.01".
std::string defaults_text(const fusion::HyperField& field) {
  std::vector<std::pair<double, std::string>> kinds_of_value;
  for (const fusion::OptimizerInfo& optimizer : fusion::optimizers()) {
    for (const fusion::HyperDefault& given : optimizer.hypers) {
      if (std::string_view(given.name) != field.name) continue;
      const auto known = std::find_if(kinds_of_value.begin(), kinds_of_value.end(),
                                      [&](const auto& entry) { return entry.first == given.value; });
      if (known == kinds_of_value.end()) {
        kinds_of_value.emplace_back(given.value, optimizer.name);
      } else {
        known->second += std::string(", ") + optimizer.name;
      }
    }
  }
  std::string text = default_text(field, kinds_of_value.at(0).first);
  for (std::size_t i = 1; i < kinds_of_value.size(); ++i) {
    text += "; " + kinds_of_value[i].second + ": " + default_text(field, kinds_of_value[i].first);
  }
  return text;
}

std::vector<std::string> kinds_with(std::string_view hyper) {
  std::vector<std::string> names;
  for (const fusion::OptimizerInfo& optimizer : fusion::optimizers()) {
    const bool has = std::any_of(optimizer.hypers.begin(), optimizer.hypers.end(),
                                 [&](const fusion::HyperDefault& given) { return given.name == hyper; });
    if (has) names.emplace_back(optimizer.name);
  }
  return names;
}

Key key_of(const std::string& section, const fusion::HyperField& field, const std::string& fallback) {
  const bool flag = std::holds_alternative<bool fusion::OptimizerHyper::*>(field.field);
  Key key{.path = section + "." + field.name,
          .type = flag ? KeyType::kFlag : KeyType::kNumber,
          .fallback = fallback,
          .only = kinds_with(field.name),
          .searched = Searched::kPerSlot,
          .sentence = field.sentence};
  if (key.only.size() == fusion::optimizers().size()) key.only.clear();
  if (!flag) {
    key.least = field.least;
    key.most = field.most;
    key.below = field.below;
  }
  return key;
}

const std::vector<HyperList>& hyper_lists() {
  static const std::vector<HyperList> lists = {
      {"betas", {"beta1", "beta2"}, "[0.9, 0.999]; lion: [0.9, 0.99]", "a list of two numbers", "Both betas at once."}};
  return lists;
}

// The key of a list of numbers, the first of which is `field`.
Key list_key(const std::string& section, const HyperList& list, const fusion::HyperField& field,
             const std::string& fallback) {
  return {.path = section + "." + list.name,
          .type = KeyType::kOther,
          .fallback = fallback,
          .least = field.least,
          .most = field.most,
          .below = field.below,
          .only = kinds_with(field.name),
          .searched = Searched::kPerSlot,
          .wanted = list.wanted,
          .sentence = list.sentence};
}

// The list that begins with a number; nullptr if none does.
const HyperList* list_before(const fusion::HyperField& field) {
  const HyperList* list = list_with(field.name);
  return list != nullptr && list->of.front() == field.name ? list : nullptr;
}

// The keys of each group in the list.
std::vector<Key> group_keys() {
  const std::string section = kOptimizer + ".groups.*", fallback = "the optimizer's";
  std::vector<Key> keys = {
      {.path = section + ".params",
       .type = KeyType::kOther,
       .searched = Searched::kShape,
       .wanted = "a name or a list of names",
       .sentence = "Parameters, by their names in the model's state dict; `*` matches anything, and a module's path is "
                   "all that is below it: `[\"*bias\", backbone]`. The first group that matches a parameter has it."},
      {.path = section + ".lr_scale",
       .fallback = "none",
       .least = 0,
       .searched = Searched::kPerSlot,
       .sentence = "Instead of lr: the optimizer's lr times this."}};
  const std::size_t own = keys.size();
  for (const fusion::HyperField& field : fusion::hyper_fields()) {
    if (const HyperList* list = list_before(field)) keys.push_back(list_key(section, *list, field, fallback));
    keys.push_back(key_of(section, field, fallback));
  }
  for (std::size_t i = own; i < keys.size(); ++i) keys[i].repeats = kOptimizer;
  return keys;
}

}  // namespace

const HyperList* list_with(std::string_view hyper) {
  const std::vector<HyperList>& all = hyper_lists();
  const auto found = std::find_if(all.begin(), all.end(), [&](const HyperList& list) {
    return std::find(list.of.begin(), list.of.end(), hyper) != list.of.end();
  });
  return found != all.end() ? &*found : nullptr;
}

std::vector<Key> optimizer_keys() {
  std::vector<Key> keys = {{.path = kOptimizer + ".name",
                            .type = KeyType::kChoice,
                            .searched = Searched::kShape,
                            .sentence = "Update rules, names and defaults are torch.optim's; lion's are its paper's."}};
  for (const fusion::OptimizerInfo& optimizer : fusion::optimizers()) keys[0].choices.emplace_back(optimizer.name);
  for (const fusion::HyperField& field : fusion::hyper_fields()) {
    if (const HyperList* list = list_before(field)) keys.push_back(list_key(kOptimizer, *list, field, list->fallback));
    keys.push_back(key_of(kOptimizer, field, defaults_text(field)));
  }
  keys.push_back({.path = kOptimizer + ".groups",
                  .type = KeyType::kOther,
                  .fallback = "none",
                  .wanted = "a list of groups: {params: names, lr: 0.001}",
                  .sentence = "Parameters with numbers of their own, each a map with the keys of the next table: "
                              "[Parameter groups](#parameter-groups)."});
  for (Key& key : group_keys()) keys.push_back(std::move(key));
  return keys;
}

std::vector<Key> phase_keys() {
  const std::string section = "train.phases.*";
  std::vector<Key> keys = {
      {.path = "train.phases",
       .type = KeyType::kOther,
       .fallback = "none",
       .wanted = "a list of phases: {loss: an output, params: names, optimizer: adam}",
       .sentence =
           "In place of loss and optimizer: steps that each batch makes in turn, as a GAN's two networks do, each "
           "a map with the keys of [the table below](#trainphases)."},
      {.path = section + ".loss",
       .type = KeyType::kWord,
       .sentence =
           "An output of the model, as of a [loss of the model](models.md#a-loss-of-your-own): a number, or one "
           "for each sample. `train_` and its name are recorded; `train_loss` and `val_loss` are the first "
           "phase's."},
      {.path = section + ".weight",
       .type = KeyType::kWord,
       .fallback = "none",
       .sentence = "The output that its mean is divided by; without one samples count alike."},
      {.path = section + ".params",
       .type = KeyType::kOther,
       .searched = Searched::kShape,
       .wanted = "a name or a list of names",
       .sentence = "The parameters that the phase trains, by their names in the model's state dict; `*` matches "
                   "anything, and a module's path is all that is below it: `discriminator`. What no phase names is "
                   "not trained."},
      {.path = section + ".optimizer",
       .type = KeyType::kSection,
       .searched = Searched::kShape,
       .sentence = "A word, or a map of the keys of [`train.optimizer`](#trainoptimizer)."},
      {.path = section + ".every",
       .type = KeyType::kInteger,
       .fallback = "1",
       .least = 1,
       .most = kMostCount,
       .searched = Searched::kShape,
       .sentence =
           "The phase has its turn behind every so many batches of an epoch: 5 is WGAN's critic's five steps for "
           "one of the generator."},
      {.path = section + ".clip_norm",
       .fallback = "none",
       .least = 0,
       .above = true,
       .searched = Searched::kPerSlot,
       .sentence = "Largest norm of the gradient of the phase's parameters."},
      {.path = section + ".clip_weights",
       .fallback = "none",
       .least = 0,
       .above = true,
       .searched = Searched::kPerSlot,
       .sentence = "After each step the phase's parameters are clamped to between its negative and it (WGAN, "
                   "arXiv:1701.07875)."}};
  for (Key key : optimizer_keys()) {
    key.path = section + key.path.substr(std::string_view("train").size());
    keys.push_back(std::move(key));
  }
  return keys;
}

std::vector<Key> schedule_keys() {
  const Searched slot = Searched::kPerSlot;
  return {
      {.path = "train.schedule.name",
       .type = KeyType::kChoice,
       .fallback = "constant",
       .choices = {"constant", "step", "cosine", "linear"},
       .searched = slot,
       .sentence = "torch.optim's StepLR, CosineAnnealingLR, LinearLR."},
      {.path = "train.schedule.per",
       .type = KeyType::kChoice,
       .fallback = "epoch",
       .choices = {"epoch", "step"},
       .searched = slot,
       .sentence = "The unit of the schedule's times."},
      {.path = "train.schedule.warmup",
       .fallback = "0",
       .least = 0,
       .searched = slot,
       .sentence =
           "Time over which the rate rises linearly from start_factor to 1, before the schedule begins. Less than "
           "training."},
      {.path = "train.schedule.step_size",
       .fallback = "30",
       .least = 0,
       .above = true,
       .only = {"step"},
       .searched = slot,
       .sentence = "Time between two steps."},
      {.path = "train.schedule.gamma",
       .fallback = "0.1",
       .least = 0,
       .only = {"step"},
       .searched = slot,
       .sentence = "Factor at each step."},
      {.path = "train.schedule.T_max",
       .fallback = "training less warmup",
       .least = 0,
       .above = true,
       .only = {"cosine"},
       .searched = slot,
       .sentence = "Time of the half wave."},
      {.path = "train.schedule.eta_min",
       .fallback = "0",
       .least = 0,
       .only = {"cosine"},
       .searched = slot,
       .sentence = "The rate at T_max."},
      {.path = "train.schedule.start_factor",
       .fallback = "0.3333333333333333",
       .least = 0,
       .most = 1,
       .above = true,
       .searched = slot,
       .sentence = "Factor at time 0 of linear, and of any warm-up."},
      {.path = "train.schedule.end_factor",
       .fallback = "1",
       .least = 0,
       .most = 1,
       .only = {"linear"},
       .searched = slot,
       .sentence = "Factor at total_iters and after."},
      {.path = "train.schedule.total_iters",
       .fallback = "5",
       .least = 0,
       .above = true,
       .only = {"linear"},
       .searched = slot,
       .sentence = "Time from start_factor to end_factor."},
  };
}

}  // namespace hfta::engine::configuration
