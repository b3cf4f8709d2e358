// Driver: adds trials to the store, both drawn by the sampler and enqueued by other programs.

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "engine/driver/driver_impl.hpp"

namespace hfta::engine {

// Whether some device is at work, or will be as soon as it is launched.
bool Driver::Impl::can_train() const {
  const auto& arrays = array_scheduler.arrays();
  return any_busy() || queue.first_entered() ||
         std::any_of(arrays.begin(), arrays.end(), [](const auto& array) { return array && array->occupied() > 0; });
}

void Driver::Impl::give_up(int draw, const std::string& reason) {
  if (!numbering.enter_or_stop(draw)) return;
  finish(draw, trials::State::kFail, reason);
  act_on(table.take_verdicts(), nullptr);
}

// Enqueued trials come before planned ones, and count to run_cap like any other: those for which there is no room wait
// for a higher run_cap.
void Driver::Impl::take_enqueued() {
  if (!table.has_room() || numbering.is_locked()) return;
  if (auto waiting = writer.enqueued()) enqueued = std::move(*waiting);
  while (!enqueued.empty() && table.has_room() && take(enqueued.front())) enqueued.erase(enqueued.begin());
}

// The latest configuration gets all of its repetitions, since those of another are to follow. False: another program
// locks the store.
bool Driver::Impl::end_configuration() {
  const int end = table.repetitions().rounded_up(table.entered());
  if (table.drawn() < end) (void)draw(end - table.drawn());
  return numbering.try_to_enter(end - 1);
}

// What is asked for, completed. Which repetition it names (a trial that was enqueued once more names one) does not
// matter, since all of the configuration follow, but it must be one that there is.
search::Completion Driver::Impl::completed(const storage::EnqueuedTrial& asked) const {
  const trials::Repetitions& repetitions = table.repetitions();
  const trials::Params configuration = repetitions.configuration_of(asked.params);
  trials::Params repetition = asked.params;
  std::erase_if(repetition,
                [&](const auto& param) { return trials::find_value(configuration, param.first) != nullptr; });
  search::Completion named = search::complete(repetitions.axes(), repetition, config.seed, asked.number);
  if (!named.problem.empty()) return named;
  search::Completion completion =
      search::complete(config.searched(), configuration, config.seed, asked.number, config.constraints);
  if (completion.problem.empty()) completion.params = repetitions.params_of(completion.params, 0);
  return completion;
}

// Takes an enqueued trial. With repetitions, it is the first one of its configuration; the others are drawn at once.
// False: another program locks the store, and the trial waits until another round.
bool Driver::Impl::take(const storage::EnqueuedTrial& asked) {
  if (!end_configuration()) return false;
  const search::Completion completion = completed(asked);
  const std::optional<bool> ours =
      writer.claim(asked.number, completion.params, dependencies.clock.utc(), completion.problem);
  numbering.asked(ours.has_value());
  if (!ours) return false;
  if (!*ours) return true;  // another program was first
  for (int draw = table.entered(); draw < table.drawn(); ++draw) queue.take(draw);
  table.forget_planned();
  const int draw = table.add(asked.number, completion.params, /*enqueued=*/true);
  if (!completion.problem.empty()) {
    batch.events.emplace_back(Note{fmt::format("trial {} cannot be tried: {}", asked.number, completion.problem)});
    batch.events.emplace_back(TrialEnded{asked.number, trials::State::kFail, {}, completion.problem});
    table.finish(draw, trials::State::kFail, completion.problem, std::nullopt);
    checkpoints.give_up(draw, asked.number, trials::State::kFail, batch);
    act_on(table.take_verdicts(), nullptr);
  } else {
    table.assign(draw, config.partition(table.trial(draw).params));
    queue.push(draw);
  }
  return end_configuration();
}

}  // namespace hfta::engine
