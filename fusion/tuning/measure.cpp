#include "fusion/measure.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <optional>

#include "base/error.hpp"
#include "fusion/execution/torch_error.hpp"
#include "fusion/tuning/widening.hpp"
#include "fusion/ways.hpp"

namespace hfta::fusion {
namespace {

WayQuestion question_of(const Graph& graph, const Recipe& recipe, const MeasureOptions& options,
                        const at::Device& device) {
  return {graph, recipe, device, options.width, options.threads, options.graphs.get()};
}

std::int64_t waves(const Lowering& lowering, int width) {
  const std::int64_t chunks = (width + lowering.chunk - 1) / lowering.chunk;
  return (chunks + lowering.workers - 1) / lowering.workers;
}

// Epochs run a chunk's steps one after another, so short ones are timed many at a time: waking a thread would cost as
// much as the step.
constexpr int kRepeats = 3;
constexpr int kWarmUps = 3;  // steps on a GPU after the first
int steps_at_a_time(double wave_seconds) {
  return static_cast<int>(std::clamp(2e-3 / std::max(wave_seconds, 1e-9), 1.0, 32.0));
}

// Cost of timing a candidate of that speed: two waves to begin with, and the repeats.
double seconds_to_time(double wave_seconds) { return wave_seconds * (2 + kRepeats * steps_at_a_time(wave_seconds)); }

constexpr double kClose = 2;  // times as slow as the fastest: what noise may have done
// Graphs of the same ops are alike if the first candidate takes at most kAlike times as long for one as for another. A
// way that is kClearly times as slow as the fastest for one loses for both.
constexpr double kAlike = 2, kClearly = 1.25;

// Times steps of one wave on real samples. Weights that would be drawn are zero: it is the shapes that cost.
class StepTimer {
 public:
  StepTimer(const Graph& graph, const Recipe& recipe, const DeviceData& data, const MeasureOptions& options,
            const at::Device& device, const Clock& clock)
      : graph_(graph), recipe_(recipe), options_(options), device_(device), clock_(clock), started_(clock.seconds()) {
    for (Weight& weight : graph_.weights) {
      const Init::Kind kind = weight.init.kind;
      weight.init = {};
      if (kind == Init::Kind::kStored || kind == Init::Kind::kJittered) weight.init.kind = Init::Kind::kStored;
    }
    const std::int64_t n = std::min<std::int64_t>(recipe.batch_size, data.size);
    samples_ = {data.inputs, data.target, {}, 0, n};
    if (!samples_.at_hand()) samples_ = samples_.taken();
  }
  StepTimer(const StepTimer&) = delete;
  StepTimer& operator=(const StepTimer&) = delete;
  // Wide candidates work in more memory than the chosen one may ever need, and malloc would keep it.
  ~StepTimer() { malloc_trim(0); }

  [[nodiscard]] double spent() const { return clock_.seconds() - started_; }

  [[nodiscard]] Measured time(const Lowering& lowering) const {
    const std::unique_ptr<Array> warm = warmed_up(lowering);
    Array& array = *warm;
    double best = wave(array, 1);  // only now it tells how many to time at once
    const int steps = array.shares_layers() ? 1 : steps_at_a_time(best);
    for (int r = steps > 1 ? 0 : 1; r < kRepeats; ++r) best = std::min(best, wave(array, steps) / steps);
    return {lowering, best};
  }

  [[nodiscard]] double sustained(const Lowering& lowering, double window) const {
    const std::unique_ptr<Array> array = warmed_up(lowering);
    const double begin = clock_.seconds();
    int steps = 0;
    double spent = 0;
    while (spent < window) {
      static_cast<void>(wave(*array, 1));
      ++steps;
      spent = clock_.seconds() - begin;
    }
    return spent / steps;
  }

  [[nodiscard]] double shared(const Lowering& lowering, const SharedSteps& shared) const {
    const bool divides = !shared.parts.empty();
    std::unique_ptr<Array> array;
    Batch batch = whole_batch();
    if (divides) {
      const BatchShare share = share_of_batch(0, samples_.end, shared.group.rank(), shared.parts);
      batch.parts[0].begin = share.begin;
      batch.parts[0].end = share.end;
      batch.earlier = share.first;
      batch.counts = share.counts;
    }
    if (options_.width > 0) {
      array = filled(lowering, options_.width, divides ? &shared.group : nullptr, shared.parts);
      static_cast<void>(seconds_of(*array, batch, 1));  // kernels are made and memory is touched
    }
    shared.group.barrier();
    const double begin = clock_.seconds();
    if (array != nullptr) static_cast<void>(seconds_of(*array, batch, shared.steps));
    shared.group.barrier();
    return (clock_.seconds() - begin) / shared.steps;
  }

 private:
  [[nodiscard]] std::unique_ptr<Array> warmed_up(const Lowering& lowering) const {
    const int chunks = std::min((options_.width + lowering.chunk - 1) / lowering.chunk, lowering.workers);
    std::unique_ptr<Array> array = filled(lowering, chunks * lowering.chunk, nullptr, {});
    static_cast<void>(wave(*array, 1));  // kernels are made and memory is touched
    for (int w = 0; w < kWarmUps && !device_.is_cpu(); ++w) static_cast<void>(wave(*array, 1));  // graphs are captured
    return array;
  }

  [[nodiscard]] std::unique_ptr<Array> filled(const Lowering& lowering, int width, Collectives* group,
                                              const std::vector<int>& parts) const {
    auto array = std::make_unique<Array>(graph_, recipe_,
                                         ArrayOptions{.lowering = lowering,
                                                      .width = width,
                                                      .study_seed = 0,
                                                      .device = device_,
                                                      .graphs = options_.graphs,
                                                      .group = group,
                                                      .parts = parts});
    SlotInit init;
    init.hyper.optimizer.lr = 0;
    init.hyper.phases.resize(recipe_.phases.size());
    for (const Hyper& hyper : graph_.hypers) init.hyper.graph.push_back(hyper.value);
    for (int b = 0; b < array->width(); ++b) array->admit(b, init);
    return array;
  }

  [[nodiscard]] Batch whole_batch() const { return {{samples_}}; }

  [[nodiscard]] double wave(Array& array, int steps) const { return seconds_of(array, whole_batch(), steps); }

  // Seconds in which every chunk makes that many steps.
  [[nodiscard]] double seconds_of(Array& array, Batch batch, int steps) const {
    const double begin = clock_.seconds();
    if (array.shares_layers()) array.prepare(batch.parts[0], SampleUse::kTraining);
    array.for_each_chunk([&](int k) {
      std::vector<at::Tensor> losses = array.fresh_losses(k);
      for (int s = 0; s < steps; ++s) array.step(k, batch, {}, losses);
      static_cast<void>(losses.back().sum().item<double>());  // waits for the device
    });
    return clock_.seconds() - begin;
  }

  Graph graph_;
  const Recipe& recipe_;
  const MeasureOptions& options_;
  const at::Device& device_;
  const Clock& clock_;
  double started_;
  Samples samples_;
};

// Finds what each candidate takes, as long as the budget lasts.
class Autotuner {
 public:
  Autotuner(const Graph& graph, const Recipe& recipe, const DeviceData& data, const MeasureOptions& options,
            const at::Device& device, const Clock& clock)
      : options_(options),
        question_(question_of(graph, recipe, options, device)),
        probe_(graph, recipe, data, options, device, clock) {}

  MeasuredChoices run(const std::vector<Lowering>& plans) {
    time_chunks(plans);
    time_families();
    if (choices_.candidates.size() > 1) time_again();
    return std::move(choices_);
  }

 private:
  // A way that the model cannot go, or that the device refuses, or that does not fit in memory, is no candidate.
  [[nodiscard]] std::optional<Measured> timed(const Lowering& lowering) {
    try {
      return probe_.time(lowering);
    } catch (const Error& error) {
      const ErrorKind kind = error.kind();
      if (kind != ErrorKind::kConfig && kind != ErrorKind::kMemory && kind != ErrorKind::kDevice) throw;
      choices_.failed.emplace_back(lowering, error.what());
    } catch (const c10::Error& error) {
      choices_.failed.emplace_back(lowering, first_line(error));
    }
    return std::nullopt;
  }

  [[nodiscard]] double per_slot(const Measured& candidate) const {
    return step_seconds(candidate, options_.width) / options_.width;
  }

  bool try_out(const Lowering& lowering) {
    const std::optional<Measured> found = timed(lowering);
    if (found) choices_.candidates.push_back(*found);
    return found.has_value();
  }

  [[nodiscard]] bool stopped() const { return options_.stop && options_.stop(); }

  [[nodiscard]] bool in_budget(double guess) const { return probe_.spent() + guess < budget_ && !stopped(); }

  bool affordable(double guess) {
    const bool enough = in_budget(guess);
    choices_.complete = choices_.complete && enough;
    return enough;
  }

  // Whether a way need not be timed, as it lost clearly for a graph that is like this one.
  [[nodiscard]] bool lost_elsewhere(const Lowering& lowering) const {
    if (options_.alike == nullptr) return false;
    const auto there = [&](const Lowering& wanted) {
      const std::vector<Measured>& all = options_.alike->candidates;
      const auto found = std::find_if(all.begin(), all.end(), [&](const Measured& m) { return m.lowering == wanted; });
      return found == all.end() ? 0 : step_seconds(*found, options_.width);
    };
    const Measured& first = choices_.candidates.front();
    const double here = step_seconds(first, options_.width), before = there(first.lowering);
    if (here > kAlike * before || before > kAlike * here) return false;
    const double lost = there(lowering);
    if (lost == 0) return options_.alike->complete;  // it was not worth timing there
    return lost > kClearly * step_seconds(options_.alike->best_for(options_.width), options_.width);
  }

  void time_chunks(const std::vector<Lowering>& plans) {
    std::size_t next = 0;
    while (next + 1 < plans.size() && !try_out(plans[next])) ++next;
    if (choices_.candidates.empty()) choices_.candidates.push_back(probe_.time(plans[next]));  // or say why not
    budget_ = options_.budget_share * options_.slot_steps * choices_.seconds_per_slot_step(options_.width);
    Widening widening(options_.width);
    widening.note(plans[next].chunk, per_slot(choices_.candidates.front()));
    for (std::size_t i = next + 1; i < plans.size(); ++i) {
      if (!widening.is_worthwhile(plans[i].chunk)) continue;
      if (lost_elsewhere(plans[i])) {
        choices_.complete = false;
        continue;
      }
      // Slots that run together take at most about as long as they would in turn.
      const double growth = std::max(1.0, static_cast<double>(plans[i].chunk) / plans[next].chunk);
      if (!affordable(seconds_to_time(growth * choices_.candidates.front().wave_seconds))) continue;
      if (try_out(plans[i])) widening.note(plans[i].chunk, per_slot(choices_.candidates.back()));
    }
  }

  // Each family's ways in turn, beside the best ones found before.
  void time_families() {
    Measured current = choices_.best_for(options_.width);
    for (const auto& [family, names] : op_forms(question_, current.lowering)) {
      for (std::size_t i = 1; i < names.size(); ++i) {
        Lowering other = current.lowering;
        other.families[family] = names[i];
        if (!affordable(seconds_to_time(current.wave_seconds)) || !try_out(other)) continue;
        if (choices_.candidates.back().wave_seconds < current.wave_seconds) current = choices_.candidates.back();
      }
    }
  }

  // Others who had the machine for a moment must not decide: what may win is timed once more. The first candidate does
  // as a rule, whatever it seemed to take: where another one seems faster the budget does not keep it from being timed,
  // since a few steps cost less than a whole study that runs the slow way.
  void time_again() {
    const Measured& best = choices_.best_for(options_.width);
    const double close = kClose * step_seconds(best, options_.width);
    const bool first_loses = &best != &choices_.candidates.front();
    for (Measured& candidate : choices_.candidates) {
      const bool is_first = &candidate == &choices_.candidates.front();
      if (!is_first && step_seconds(candidate, options_.width) > close) continue;
      const bool whatever_it_costs = is_first && first_loses && !stopped();
      if (!whatever_it_costs && !in_budget(seconds_to_time(candidate.wave_seconds))) continue;
      const std::optional<Measured> again = timed(candidate.lowering);
      if (again) candidate.wave_seconds = std::min(candidate.wave_seconds, again->wave_seconds);
    }
  }

  const MeasureOptions& options_;
  WayQuestion question_;
  StepTimer probe_;
  MeasuredChoices choices_{{}, ChoiceOrigin::kMeasured, true};
  double budget_ = 0;  // seconds
};

}  // namespace

double step_seconds(const Measured& candidate, int width) {
  return static_cast<double>(waves(candidate.lowering, width)) * candidate.wave_seconds;
}

const Measured& MeasuredChoices::best_for(int width) const {
  return *std::min_element(candidates.begin(), candidates.end(), [&](const Measured& a, const Measured& b) {
    return step_seconds(a, width) < step_seconds(b, width);
  });
}

double MeasuredChoices::seconds_per_slot_step(int width) const { return step_seconds(best_for(width), width) / width; }

double sustained_wave_seconds(const Graph& graph, const Recipe& recipe, const DeviceData& data,
                              const MeasureOptions& options, const Lowering& lowering, double window,
                              const at::Device& device, const Clock& clock) {
  return StepTimer(graph, recipe, data, options, device, clock).sustained(lowering, window);
}

double shared_step_seconds(const Graph& graph, const Recipe& recipe, const DeviceData& data,
                           const MeasureOptions& options, const Lowering& lowering, const SharedSteps& shared,
                           const at::Device& device, const Clock& clock) {
  return StepTimer(graph, recipe, data, options, device, clock).shared(lowering, shared);
}

std::vector<Lowering> lowering_candidates(const Graph& graph, const Recipe& recipe, const MeasureOptions& options,
                                          const at::Device& device) {
  return ways_to_run(question_of(graph, recipe, options, device));
}

MeasuredChoices measure(const Graph& graph, const Recipe& recipe, const DeviceData& data, const MeasureOptions& options,
                        const at::Device& device, const Clock& clock) {
  const std::vector<Lowering> plans =
      options.ways.empty() ? lowering_candidates(graph, recipe, options, device) : options.ways;
  if (options.slot_steps <= 0) return {{{plans.front(), 0}}, ChoiceOrigin::kNotMeasured};
  return Autotuner(graph, recipe, data, options, device, clock).run(plans);
}

}  // namespace hfta::fusion
