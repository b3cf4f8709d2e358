// FusedTrainer as one rank of a device: measures how long steps take, and keeps how arrays are shared.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "engine/fused/translated.hpp"
#include "engine/topology/numa.hpp"
#include "fusion/measure.hpp"

namespace hfta::engine {
namespace {

// Seconds of a timing. The longest outlasts a scheduler that gives a loaded core away for some milliseconds at a
// time.
constexpr double kLongest = 0.25, kShortest = 0.02, kShare = 0.02;
constexpr int kTimings = 7;
double window_of(const KeptChoices& kept) {
  const double ahead = kept.slot_steps * kept.choices.seconds_per_slot_step(kept.key.width);
  return std::clamp(kShare * ahead / kTimings, kShortest, kLongest);
}

int chunks(const fusion::Lowering& lowering, int width) { return (width + lowering.chunk - 1) / lowering.chunk; }

template <typename T>
double seconds_to_sum(fusion::Collectives& group, std::int64_t numbers, const Clock& clock) {
  constexpr int kTimes = 5;
  constexpr std::int64_t kMost = 1 << 24;
  std::vector<T> values(static_cast<std::size_t>(std::clamp<std::int64_t>(numbers, 1, kMost)));
  group.all_reduce(std::span<T>(values));  // touches the memory
  const double began = clock.seconds();
  for (int i = 0; i < kTimes; ++i) group.all_reduce(std::span<T>(values));
  const double each = (clock.seconds() - began) / kTimes;
  return each * static_cast<double>(numbers) / static_cast<double>(values.size());
}

}  // namespace

std::string FusedTrainer::choose(const trials::Params& params, double expected_epochs, const Pause& pause) {
  const TrainerSetup& setup = parts_.setup;
  const PreparedTask task = prepare(params);
  const KeepTo kept_to(setup.options().cpus);
  return translated(setup.options().label, [&] {
    const KeptChoices& kept = choices_.choose(task, setup.config().partition(params), expected_epochs, pause);
    return nlohmann::ordered_json({{"choices", to_json(kept)}}).dump();
  });
}

int FusedTrainer::planned_width(const trials::Params& params) { return parts_.memory.planned_width(prepare(params)); }

std::string FusedTrainer::why_not_divided(const trials::Params& params, std::span<const int> parts) {
  return parts_.facts.why_not_divided(prepare(params), parts);
}

// A known division may be from other data, which end in another batch.
std::optional<RankPlans> FusedTrainer::division(const trials::Params& params) {
  const PreparedTask task = prepare(params);
  const KeptChoices& kept = choices_.choose(task, parts_.setup.config().partition(params), 0, never);
  const bool impossible =
      kept.divides_batches() && !parts_.facts.why_not_divided(task, kept.ranks->chosen.parts).empty();
  return impossible ? std::nullopt : kept.ranks;
}

bool FusedTrainer::kept_batches_whole(const trials::Params& params) {
  const std::string partition = parts_.setup.config().partition(params);
  const KeptChoices& kept = choices_.choose(prepare(params), partition, 0, never);
  return kept.choices.how == fusion::ChoiceOrigin::kRecalled && choices_.had_whole_batches(partition);
}

// Ranks that divide batches run a chunk at a time; other ranks run as the lowering says.
RankTimes FusedTrainer::rank_times(const trials::Params& params, int width, bool batches) {
  const TrainerSetup& setup = parts_.setup;
  const PreparedTask task = prepare(params);
  const KeepTo kept_to(setup.options().cpus);
  return translated(setup.options().label, [&] {
    const KeptChoices& kept = choices_.choose(task, setup.config().partition(params), 0, never);
    const fusion::Lowering lowering = kept.choices.best_for(choices_.decided_width(kept, width)).lowering;
    const fusion::DeviceData& data = parts_.data.trained(task).train;
    const auto wave = [&](std::int64_t samples, int slots) {
      fusion::Recipe recipe = task.spec.recipe;
      recipe.batch_size = static_cast<int>(samples);
      const fusion::MeasureOptions options{.width = slots, .threads = setup.threads(), .graphs = setup.graphs()};
      return fusion::Measured{
          lowering, fusion::sustained_wave_seconds(parts_.facts.trained_graph(task), recipe, data, options, lowering,
                                                   window_of(kept), setup.device(), clock_)};
    };
    RankTimes times;
    const std::int64_t batch = std::min<std::int64_t>(task.spec.recipe.batch_size, data.size);
    const fusion::Measured whole = wave(batch, width);
    for (int slots = 1; slots <= width; ++slots) times.of_slots.push_back(fusion::step_seconds(whole, slots));
    const auto allowed = [&](std::int64_t samples) { return parts_.facts.trained_graph(task).limits.allow(samples); };
    for (const std::int64_t samples : sizes_to_time(batch, batches, allowed)) {
      if (times.of_samples.contains(samples)) continue;
      times.of_samples[samples] = wave(samples, lowering.chunk).wave_seconds * chunks(lowering, width);
    }
    return times;
  });
}

double FusedTrainer::exchange_seconds(const trials::Params& params, int width) {
  const TrainerSetup& setup = parts_.setup;
  const PreparedTask task = prepare(params);
  const std::int64_t numbers = parts_.facts.trained_graph(task).parameter_count();
  const KeepTo kept_to(setup.options().cpus);
  const bool is_double = task.spec.recipe.dtype == fusion::DType::kFloat64;
  const double seconds = is_double ? seconds_to_sum<double>(*setup.options().group, numbers, clock_)
                                   : seconds_to_sum<float>(*setup.options().group, numbers, clock_);
  return seconds * width;
}

double FusedTrainer::window(const trials::Params& params) {
  return window_of(choices_.choose(prepare(params), parts_.setup.config().partition(params), 0, never));
}

double FusedTrainer::tried_seconds(const trials::Params& params, int width, const Division& division, int steps) {
  const TrainerSetup& setup = parts_.setup;
  const PreparedTask task = prepare(params);
  const KeepTo kept_to(setup.options().cpus);
  return translated(setup.options().label, [&] {
    const KeptChoices& kept = choices_.choose(task, setup.config().partition(params), 0, never);
    const bool slots = division.of == Division::Of::kSlots;
    const auto rank = static_cast<std::size_t>(setup.options().group->rank());
    const int own = slots ? slots_of_ranks(width, division.parts)[rank] : width;
    const fusion::MeasureOptions options{.width = own, .threads = setup.threads(), .graphs = setup.graphs()};
    const fusion::SharedSteps shared{*setup.options().group, slots ? std::vector<int>() : division.parts, steps};
    return fusion::shared_step_seconds(
        parts_.facts.trained_graph(task), task.spec.recipe, parts_.data.trained(task).train, options,
        kept.choices.best_for(choices_.decided_width(kept, width)).lowering, shared, setup.device(), clock_);
  });
}

void FusedTrainer::divide(const trials::Params& params, const RankPlans& plans, const Pause& pause) {
  choices_.divide(prepare(params), parts_.setup.config().partition(params), plans, pause);
}

}  // namespace hfta::engine
