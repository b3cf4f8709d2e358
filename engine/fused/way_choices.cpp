#include "engine/fused/way_choices.hpp"

#include <utility>

#include "engine/fused/choice_keys.hpp"
#include "engine/fused/translated.hpp"
#include "fusion/epochs.hpp"
#include "fusion/measure.hpp"
#include "fusion/ways.hpp"

namespace hfta::engine {
namespace {

std::string ops_text(const fusion::Graph& graph) {
  std::string ops;
  for (const fusion::Node& node : graph.nodes) ops += node.op + ' ';
  return ops;
}

std::vector<fusion::Lowering> lowerings_of(const std::vector<WayNeed>& ways) {
  std::vector<fusion::Lowering> all;
  all.reserve(ways.size());
  for (const WayNeed& way : ways) all.push_back(way.lowering);
  return all;
}

}  // namespace

WayChoices::WayChoices(TrainerParts& parts, Files& files, const Clock& clock)
    : parts_(parts), clock_(clock), cache_(files, parts.setup.options().cache), recalled_(parts.setup) {}

const KeptChoices& WayChoices::choose(const PreparedTask& task, const std::string& partition, double expected_epochs,
                                      const Pause& pause) {
  return entry(task, partition, expected_epochs, pause);
}

KeptChoices& WayChoices::entry(const PreparedTask& task, const std::string& partition, double expected_epochs,
                               const Pause& pause) {
  const std::string graph = parts_.facts.key_of(task);
  note_graph(partition, graph);
  KeptChoices* const earlier = recalled_.find(partition);
  if (earlier != nullptr && earlier->key.graph == graph) return *earlier;
  const auto known = choices_.find(graph);
  if (known != choices_.end()) return known->second;
  const std::string ops = ops_text(parts_.facts.trained_graph(task));
  const auto like = alike_.find(ops);
  const fusion::MeasuredChoices* alike = like == alike_.end() ? nullptr : &like->second->choices;
  const ChoiceKey key = choice_key(parts_.setup, graph, parts_.memory.planned_width(task));
  KeptChoices& kept = choices_.emplace(graph, measured(task, key, expected_epochs, alike, pause)).first->second;
  alike_.try_emplace(ops, &kept);
  return kept;
}

KeptChoices WayChoices::measured(const PreparedTask& task, const ChoiceKey& key, double expected_epochs,
                                 const fusion::MeasuredChoices* alike, const Pause& pause) {
  const TrainerSetup& setup = parts_.setup;
  // The whole model, which would be timed, may be too large for one of its stages.
  if (setup.stages() > 1) {
    return {key, {{{parts_.memory.budgeted(task).ways.front().lowering, 0}}, fusion::ChoiceOrigin::kNotMeasured}};
  }
  const fusion::DeviceData& data = parts_.data.trained(task).train;
  const fusion::Recipe& recipe = task.spec.recipe;
  const fusion::Epochs epochs(recipe, parts_.facts.epoch_options(task), data, nullptr);
  const double slot_steps = expected_epochs * static_cast<double>(epochs.steps_per_epoch());
  if (auto known = cache_.find(key, slot_steps); known && are_runnable(setup, *known)) {
    // The division may be one of other ranks, or of another setting, which tried less.
    const bool ours =
        known->ranks && setup.ranks() > 1 && is_choice_of(*known->ranks, setup.ranks(), setup.config().divide);
    if (!ours) known->ranks.reset();
    return *std::move(known);
  }
  const fusion::MeasureOptions options{
      key.width, key.threads, slot_steps, 0.02, pause, setup.graphs(), lowerings_of(parts_.memory.budgeted(task).ways),
      alike};
  KeptChoices kept{key,
                   fusion::measure(parts_.facts.trained_graph(task), recipe, data, options, setup.device(), clock_),
                   slot_steps};
  if (!pause()) cache_.remember(kept);  // a pause would have cut it short
  return kept;
}

std::vector<MeasuredWay> WayChoices::measure(const PreparedTask& task, const Pause& pause) {
  constexpr double kPlenty = 1e12;  // claimed number of slot steps ahead, so that nothing is left out
  const TrainerSetup& setup = parts_.setup;
  if (setup.stages() > 1) {
    return {{.lowering = parts_.memory.budgeted(task).ways.front().lowering.to_text(),
             .why_not = "stages of a pipeline are not timed, as the whole model may be too large for one of them"}};
  }
  return translated(setup.options().label, [&] {
    const ChoiceKey key = choice_key(setup, parts_.facts.key_of(task), parts_.memory.planned_width(task));
    const fusion::WayQuestion asked = parts_.memory.question(task, key.width);
    const Budgeted budget = parts_.memory.budgeted(task);
    const auto timed = [&](std::vector<fusion::Lowering> which) {
      const fusion::MeasureOptions options{key.width, key.threads,    kPlenty,         0.02,
                                           pause,     setup.graphs(), std::move(which)};
      return fusion::measure(asked.graph, asked.recipe, parts_.data.trained(task).train, options, setup.device(),
                             clock_);
    };
    KeptChoices kept{key, timed(lowerings_of(budget.ways)), kPlenty};
    if (const auto known = cache_.find(key, 0)) kept.ranks = known->ranks;
    if (!pause()) cache_.remember(kept);
    std::vector<MeasuredWay> ways;
    const fusion::Measured& best = kept.choices.best_for(key.width);
    const auto add = [&](const fusion::Measured& way) {
      const double seconds = fusion::step_seconds(way, key.width) / key.width;
      ways.push_back({way.lowering.to_text(), seconds, task.spec.recipe.batch_size / seconds, &way == &best,
                      fusion::way_note(asked, way.lowering)});
    };
    for (const fusion::Measured& way : kept.choices.candidates) add(way);
    // Leaner ways are timed if the config names memory, to show what they would cost; they are not chosen.
    if (setup.config().memory.given && !budget.spare.empty()) {
      for (const fusion::Measured& way : timed(lowerings_of(budget.spare)).candidates) add(way);
    }
    for (auto& [name, why] : fusion::ways_refused(asked)) ways.push_back({.lowering = name, .why_not = why});
    for (const auto& [way, why] : kept.choices.failed) ways.push_back({.lowering = way.to_text(), .why_not = why});
    return ways;
  });
}

void WayChoices::note_graph(const std::string& partition, const std::string& graph) {
  graphs_.try_emplace(partition, graph);
}

std::string WayChoices::recall(const std::string& partition, const std::string& choices_json) {
  const auto graph = graphs_.find(partition);
  return recalled_.recall(partition, graph == graphs_.end() ? "" : graph->second, choices_json);
}

void WayChoices::divide(const PreparedTask& task, const std::string& partition, const RankPlans& plans,
                        const Pause& pause) {
  KeptChoices& kept = entry(task, partition, 0, never);
  kept.ranks = plans;
  if (!pause() && kept.choices.how != fusion::ChoiceOrigin::kRecalled && parts_.setup.stages() == 1) {
    cache_.remember(kept);
  }
}

bool WayChoices::had_whole_batches(const std::string& partition) const {
  return recalled_.had_whole_batches(partition);
}

std::optional<double> WayChoices::step_seconds(const std::string& partition, int slots) const {
  const KeptChoices* const earlier = recalled_.find(partition);
  const auto graph = graphs_.find(partition);
  const auto known = graph == graphs_.end() ? choices_.end() : choices_.find(graph->second);
  const bool recalled = earlier != nullptr && (graph == graphs_.end() || earlier->key.graph == graph->second);
  if (!recalled && known == choices_.end()) return std::nullopt;
  const KeptChoices& kept = recalled ? *earlier : known->second;
  const fusion::Measured& way = kept.choices.best_for(decided_width(kept, slots));
  const double seconds = fusion::step_seconds(way, slots);
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

int WayChoices::decided_width(const KeptChoices& kept, int width) const {
  return parts_.setup.device().is_cpu() ? kept.key.width : width;
}

}  // namespace hfta::engine
