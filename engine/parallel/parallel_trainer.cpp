#include "engine/parallel/parallel_trainer.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/parallel/arrays.hpp"
#include "engine/parallel/requests.hpp"
#include "engine/params_json.hpp"

namespace hfta::engine {

using nlohmann::json;

namespace {

json called(const char* name, json request) {
  request["call"] = name;
  return request;
}

}  // namespace

DeviceFacts ParallelTrainer::device_facts() const {
  DeviceFacts facts = own_->device_facts();
  const int count = ranks_.count();
  facts.speed *= count;
  const bool slots = divide_ == Divide::kSlots || divide_ == Divide::kAuto;
  if (facts.busy_slots && slots) facts.busy_slots = *facts.busy_slots * count;
  facts.threads = facts.cpus.empty() ? facts.threads * count : 0;  // its ranks keep to nodes of their own
  return facts;
}

std::optional<double> ParallelTrainer::step_seconds(const std::string& partition, int slots) const {
  const std::optional<double> own = own_->step_seconds(partition, slots);
  return own ? std::optional(*own / ranks_.count()) : std::nullopt;
}

RankQuestion ParallelTrainer::measured(const trials::Params& params, int width, const json& request) {
  const std::vector<int> equal(static_cast<std::size_t>(ranks_.count()), 1);
  RankQuestion question;
  question.batches = own_->why_not_divided(params, equal).empty();
  question.ranks.resize(equal.size());
  ranks_.together(called("exchange", request),  // first: then all of them have started, and their data are there
                  [&] { question.exchange_seconds = own_->exchange_seconds(params, width); });
  ranks_.together(
      called("times", request), [&] { question.ranks.front() = own_->rank_times(params, width); },
      [&](int rank, const json& answer) {
        question.ranks[static_cast<std::size_t>(rank)] = times_from(answer.at("times"));
      });
  return question;
}

double ParallelTrainer::tried(const trials::Params& params, int width, const RankPlan& plan, const json& request) {
  constexpr double kMostSteps = 1000;
  const double steps = std::clamp(own_->window(params) / std::max(plan.predicted_seconds, 1e-9), 2.0, kMostSteps);
  json one = called("try", request);
  one["division"] = division_json(plan.division);
  one["steps"] = static_cast<int>(steps);
  double seconds = 0;
  ranks_.together(one, [&] { seconds = own_->tried_seconds(params, width, plan.division, static_cast<int>(steps)); });
  return seconds;
}

Division ParallelTrainer::decided(const trials::Params& params, int width, const std::string& choices) {
  const json request = {
      {"partition", partition_(params)}, {"params", params_json(params)}, {"width", width}, {"choices", choices}};
  RankPlans plans;
  for (RankPlan& plan : rank_plans(measured(params, width, request))) {
    const bool batches = plan.division.of == Division::Of::kBatches;
    if (batches && !own_->why_not_divided(params, plan.division.parts).empty()) continue;
    if (agrees(plan.division, divide_)) plan.tried_seconds = tried(params, width, plan, request);
    plans.plans.push_back(std::move(plan));
  }
  plans.chosen = chosen_of(plans.plans, divide_).division;
  own_->divide(params, plans);
  return plans.chosen;
}

std::unique_ptr<TrainerArray> ParallelTrainer::open(const trials::Params& params, int width, double expected_epochs,
                                                    const Pause& pause) {
  ranks_.start();  // they load their data meanwhile
  std::string choices = own_->choose(params, expected_epochs, pause);
  std::optional<Division> division = own_->division(params);
  if (!division) {
    division = decided(params, width, choices);
    choices = own_->choose(params, expected_epochs, pause);
  }
  const bool slots = division->of == Division::Of::kSlots;
  const std::vector<int> widths = slots ? widths_of_ranks(width, division->parts)
                                        : std::vector<int>(static_cast<std::size_t>(ranks_.count()), width);
  std::unique_ptr<TrainerArray> own;
  ranks_.together(
      [&](int rank) {
        return json{{"call", "open"},
                    {"partition", partition_(params)},
                    {"params", params_json(params)},
                    {"width", widths[static_cast<std::size_t>(rank)]},
                    {"choices", choices}};
      },
      [&] { own = own_->open(params, widths.front(), expected_epochs, pause); });
  return slots ? make_array_of_slots(ranks_, std::move(own), width, division->parts)
               : make_array_of_batches(ranks_, std::move(own));
}

}  // namespace hfta::engine
