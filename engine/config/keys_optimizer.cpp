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

Key key_of(const fusion::HyperField& field) {
  const bool flag = std::holds_alternative<bool fusion::OptimizerHyper::*>(field.field);
  Key key{.path = std::string("train.optimizer.") + field.name,
          .type = flag ? KeyType::kFlag : KeyType::kNumber,
          .fallback = defaults_text(field),
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

// PyTorch's way to say beta1 and beta2.
Key betas_key() {
  return {.path = "train.optimizer.betas",
          .type = KeyType::kOther,
          .fallback = "[0.9, 0.999]; lion: [0.9, 0.99]",
          .least = 0,
          .most = 1,
          .below = true,
          .only = kinds_with("beta1"),
          .searched = Searched::kPerSlot,
          .wanted = "a list of two numbers",
          .sentence = "Both betas at once."};
}

}  // namespace

std::vector<Key> optimizer_keys() {
  std::vector<Key> keys = {{.path = "train.optimizer.name",
                            .type = KeyType::kChoice,
                            .searched = Searched::kShape,
                            .sentence = "Update rules, names and defaults are torch.optim's; lion's are its paper's."}};
  for (const fusion::OptimizerInfo& optimizer : fusion::optimizers()) keys[0].choices.emplace_back(optimizer.name);
  for (const fusion::HyperField& field : fusion::hyper_fields()) {
    if (std::string_view(field.name) == "beta1") keys.push_back(betas_key());
    keys.push_back(key_of(field));
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
