#include "engine/parallel/parallel_trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "engine/parallel/arrays.hpp"

namespace hfta::engine {

using nlohmann::json;

namespace {

void check_alike(const RankTimes& times, const RankTimes& first, int rank) {
  const auto check = [&](const char* what, std::size_t found, std::size_t wanted) {
    if (found == wanted) return;
    throw Error(ErrorKind::kInternal,
                fmt::format("rank {}: found times of {} {}, wanted {}", rank, found, what, wanted));
  };
  check("slots", times.of_slots.size(), first.of_slots.size());
  check("sizes of batches", times.of_samples.size(), first.of_samples.size());
  for (const auto& [samples, seconds] : first.of_samples) {
    if (times.of_samples.contains(samples)) continue;
    throw Error(ErrorKind::kInternal,
                fmt::format("rank {}: found no time of a batch of {} samples, wanted one as of rank 0", rank, samples));
  }
}

// The width of each rank's array.
std::vector<int> widths_of(int width, const Division& division) {
  if (division.of == Division::Of::kSlots) return widths_of_ranks(width, division.parts);
  return std::vector<int>(division.parts.size(), width);
}

std::unique_ptr<TrainerArray> shared_array(Ranks& ranks, std::unique_ptr<TrainerArray> own, int width,
                                           const Division& division) {
  switch (division.of) {
    case Division::Of::kBatches:
      return make_array_of_batches(ranks, std::move(own));
    case Division::Of::kSlots:
      return make_array_of_slots(ranks, std::move(own), width, division.parts);
    case Division::Of::kStages:
      return make_array_of_stages(ranks, std::move(own));
  }
  return nullptr;
}

}  // namespace

DeviceFacts ParallelTrainer::device_facts() const {
  DeviceFacts facts = own_->device_facts();
  const int count = ranks_.count();
  facts.speed *= count;
  const bool batches = divide_ == Divide::kBatches || divide_ == Divide::kEvenBatches;
  if (facts.busy_slots && !batches) facts.busy_slots = *facts.busy_slots * count;
  facts.threads = facts.cpus.empty() ? facts.threads * count : 0;  // ranks keep to nodes of their own
  return facts;
}

std::optional<double> ParallelTrainer::step_seconds(const std::string& partition, int slots) const {
  const std::optional<double> own = own_->step_seconds(partition, slots);
  return own ? std::optional(*own / ranks_.count()) : std::nullopt;
}

RankQuestion ParallelTrainer::measured(const trials::Params& params, int width, const ArrayWanted& wanted) {
  const std::vector<int> equal(static_cast<std::size_t>(ranks_.count()), 1);
  RankQuestion question;
  question.batches = own_->why_not_divided(params, equal).empty();
  question.ranks.resize(equal.size());
  ranks_.together(ExchangeRequest{wanted},  // first: then all of them have started, and their data are there
                  [&] { question.exchange_seconds = own_->exchange_seconds(params, width); });
  ranks_.together(
      TimesRequest{wanted, question.batches},
      [&] { question.ranks.front() = own_->rank_times(params, width, question.batches); },
      [&](int rank, const json& answer) {
        RankTimes& times = question.ranks[static_cast<std::size_t>(rank)];
        times = answer.get<TimesAnswer>().times;
        check_alike(times, question.ranks.front(), rank);
      });
  return question;
}

double ParallelTrainer::tried(const trials::Params& params, int width, const RankPlan& plan,
                              const ArrayWanted& wanted) {
  constexpr double kMostSteps = 1000;
  const auto steps =
      static_cast<int>(std::clamp(own_->window(params) / std::max(plan.predicted_seconds, 1e-9), 2.0, kMostSteps));
  double seconds = 0;
  ranks_.together(TryRequest{wanted, plan.division, steps},
                  [&] { seconds = own_->tried_seconds(params, width, plan.division, steps); });
  return seconds;
}

std::optional<Division> ParallelTrainer::known(const trials::Params& params, int width) {
  const std::optional<RankPlans> plans = own_->division(params);
  if (!plans || (plans->chosen.of == Division::Of::kSlots && plans->width != width)) return std::nullopt;
  return plans->chosen;
}

Divide ParallelTrainer::divide_for(const trials::Params& params) {
  if (divide_ != Divide::kAuto) return divide_;
  const std::optional<RankPlans> plans = own_->division(params);
  const bool slots = plans && plans->chosen.of == Division::Of::kSlots;
  return slots || own_->kept_batches_whole(params) ? Divide::kSlots : Divide::kAuto;
}

Division ParallelTrainer::decided(const trials::Params& params, int width, const std::string& choices,
                                  const Pause& pause) {
  const Divide divide = divide_for(params);
  RankPlans plans;
  plans.plans = divide == Divide::kStages ? std::vector{plan_of_stages(ranks_.count())}
                                          : plans_tried(params, width, choices, divide, pause);
  plans.chosen = chosen_of(plans.plans, divide).division;
  plans.width = width;
  own_->divide(params, plans, pause);
  return plans.chosen;
}

std::vector<RankPlan> ParallelTrainer::plans_tried(const trials::Params& params, int width, const std::string& choices,
                                                   Divide divide, const Pause& pause) {
  const ArrayWanted wanted{partition_(params), params, width, choices};
  std::vector<RankPlan> plans;
  for (RankPlan& plan : rank_plans(measured(params, width, wanted))) {
    const bool batches = plan.division.of == Division::Of::kBatches;
    if (batches && !own_->why_not_divided(params, plan.division.parts).empty()) continue;
    if (agrees(plan.division, divide) && !pause()) plan.tried_seconds = tried(params, width, plan, wanted);
    plans.push_back(std::move(plan));
  }
  return plans;
}

std::unique_ptr<TrainerArray> ParallelTrainer::open(const trials::Params& params, int width, double expected_epochs,
                                                    const Pause& pause) {
  ranks_.start();  // they load their data meanwhile
  std::string choices = own_->choose(params, expected_epochs, pause);
  const int planned = own_->planned_width(params);
  std::optional<Division> division = known(params, planned);
  if (!division) {
    division = decided(params, planned, choices, pause);
    choices = own_->choose(params, expected_epochs, pause);
  }
  const std::vector<int> widths = widths_of(width, *division);
  std::unique_ptr<TrainerArray> own;
  ranks_.together(
      [&](int rank) {
        return OpenRequest{{partition_(params), params, widths[static_cast<std::size_t>(rank)], choices}};
      },
      [&] { own = own_->open(params, widths.front(), expected_epochs, pause); });
  return shared_array(ranks_, std::move(own), width, *division);
}

}  // namespace hfta::engine
