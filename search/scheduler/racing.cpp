#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "base/error.hpp"
#include "search/repetition.hpp"
#include "search/scheduler/configuration_judge.hpp"
#include "search/scheduler/verdicts.hpp"
#include "search/signed_rank.hpp"

namespace hfta::search {
namespace {

constexpr int kNever = std::numeric_limits<int>::max();

// The reports on one configuration, and its state.
struct Racer {
  std::map<int, std::vector<double>> values;  // by epoch; only epochs not judged yet
  int failed_at = kNever;                     // the epoch that it did not survive
  int stopped_at = kNever;
  int waits_at = 0;  // the epoch that it was told to pause after; 0: none
};

// After an epoch, configurations are judged in the order of their draws, each as soon as all before it have been judged
// there or have ended sooner.
class Race final : public ConfigurationJudge {
 public:
  Race(const RacingOptions& options, const trials::Repetitions& repetitions, trials::Goal goal)
      : options_(options), rank_(repetitions.rank), goal_(goal) {
    if (options.min_epochs < 1 || options.max_epochs < 1 || options.confidence < 50 || options.confidence > 99) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("racing: found min_epochs {}, epochs {} and confidence {}, wanted at least 1, at least 1 "
                              "and 50 to 99",
                              options.min_epochs, options.max_epochs, options.confidence));
    }
    if (repetitions.count() < fewest_for_racing(options.confidence)) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("racing: found {} repetitions of a configuration, wanted at least {}: fewer are never "
                              "worse with a confidence of {} %",
                              repetitions.count(), fewest_for_racing(options.confidence), options.confidence));
    }
    queues_.resize(static_cast<std::size_t>(std::max(0, options.max_epochs - options.min_epochs)));
  }

  void enter(int /*configuration*/, const trials::Params& /*params*/) override {}
  [[nodiscard]] std::optional<int> capacity() const override { return std::nullopt; }
  [[nodiscard]] int target(int /*configuration*/) const override { return options_.max_epochs; }
  [[nodiscard]] int max_epochs() const override { return options_.max_epochs; }
  [[nodiscard]] std::int64_t planned_epochs(int /*first*/, int configurations) const override {
    return std::int64_t{options_.max_epochs} * configurations;
  }

  Decision judge(int configuration, int epoch, const std::vector<double>& values) override {
    Racer& racer = racers_[configuration];
    racer.waits_at = 0;
    if (!std::isfinite(trials::value_of(values, rank_, goal_))) {
      racer.failed_at = std::min(racer.failed_at, epoch);
    } else if (epoch >= options_.min_epochs && epoch < options_.max_epochs) {
      racer.values.emplace(epoch, values);
    }
    settle();
    if (racer.stopped_at != kNever || racer.failed_at != kNever) return Decision::kStop;
    if (epoch == options_.max_epochs) return Decision::kComplete;
    if (epoch < options_.min_epochs || queue(epoch).next > configuration) return Decision::kContinue;
    racer.waits_at = epoch;
    return Decision::kPause;
  }

  std::vector<Verdict> take_verdicts() override {
    return take_due(verdicts_, [this](int configuration) { return racers_.at(configuration).failed_at != kNever; });
  }

 private:
  struct Queue {
    int next = 0;              // the configuration to be judged next
    double best_value = 0;     // the best value of those judged
    std::vector<double> best;  // its repetitions' values; empty: none has been judged
  };

  [[nodiscard]] Queue& queue(int epoch) { return queues_[static_cast<std::size_t>(epoch - options_.min_epochs)]; }

  // Judges all that can be judged. Epochs ascend, since a later one has to know what was stopped.
  void settle() {
    for (int epoch = options_.min_epochs; epoch < options_.max_epochs; ++epoch) {
      Queue& line = queue(epoch);
      for (auto at = racers_.find(line.next); at != racers_.end() && at->first == line.next; ++at, ++line.next) {
        Racer& racer = at->second;
        if (epoch > options_.min_epochs && queue(epoch - 1).next <= at->first) break;
        if (racer.stopped_at < epoch || racer.failed_at <= epoch) continue;
        const auto values = racer.values.find(epoch);
        if (values == racer.values.end()) break;
        judge_against_best(at->first, racer, epoch, values->second, line);
        racer.values.erase(values);
      }
    }
  }

  void judge_against_best(int configuration, Racer& racer, int epoch, const std::vector<double>& values, Queue& line) {
    const double value = trials::value_of(values, rank_, goal_);
    if (!line.best.empty() && signed_rank_p(how_much_worse(values, line.best)) <= 1 - options_.confidence / 100.0) {
      racer.stopped_at = epoch;
    }
    if (line.best.empty() || trials::better(value, line.best_value, goal_)) {
      line.best = values;
      line.best_value = value;
    }
    if (racer.waits_at != epoch) return;
    racer.waits_at = 0;
    verdicts_.push_back({configuration, racer.stopped_at == epoch ? Decision::kStop : Decision::kContinue});
  }

  [[nodiscard]] std::vector<double> how_much_worse(const std::vector<double>& values,
                                                   const std::vector<double>& best) const {
    constexpr double kFailed = std::numeric_limits<double>::infinity();
    const auto loss = [this](double value) {
      if (std::isnan(value)) return kFailed;
      return goal_ == trials::Goal::kMinimize ? value : -value;
    };
    std::vector<double> differences;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double difference = loss(values[i]) - loss(best[i]);
      if (!std::isnan(difference)) differences.push_back(difference);
    }
    return differences;
  }

  RacingOptions options_;
  trials::Rank rank_;
  trials::Goal goal_;
  std::map<int, Racer> racers_;  // keyed by configuration
  std::vector<Queue> queues_;    // one for each epoch min_epochs ... max_epochs - 1
  std::vector<Verdict> verdicts_;
};

}  // namespace

int fewest_for_racing(int confidence) {
  int pairs = 1;
  for (double p = 0.5; p > 1 - confidence / 100.0; p /= 2) ++pairs;
  return pairs;
}

std::unique_ptr<Scheduler> make_racing(const RacingOptions& options, const trials::Repetitions& repetitions,
                                       trials::Goal goal) {
  return judged_by(std::make_unique<Race>(options, repetitions, goal), repetitions);
}

}  // namespace hfta::search
