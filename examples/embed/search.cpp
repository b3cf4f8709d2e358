// Random configurations under Hyperband, each "trained" by a formula: the place for a trainer of your own. Needs no
// torch.
#include <cmath>
#include <cstdio>
#include <numeric>

#include "search/sampler.hpp"
#include "search/scheduler.hpp"

namespace {

using namespace hfta;

// What a configuration's loss is after so many epochs: least for a rate of 0.01.
double loss_after(int epochs, const trials::Params& params) {
  const double distance = std::log10(std::get<double>(params[0].second)) + 2;
  return 1.0 / (1 + epochs) + distance * distance;
}

}  // namespace

int main() {
  const trials::Space space = {{"lr", {.kind = trials::DistributionKind::kLogUniformValues, .min = 1e-4, .max = 1}}};
  const auto sampler = search::make_random(space, /*seed=*/1);
  const auto hyperband = search::make_hyperband({.max_epochs = 9}, trials::Goal::kMinimize, {});
  const int count = hyperband->capacity().value();
  const std::vector<trials::Params> configurations = sampler->ask(0, count, {});

  std::vector<trials::Trial> all(configurations.size());
  std::vector<int> running(configurations.size());
  std::iota(running.begin(), running.end(), 0);
  while (!running.empty()) {
    for (const int i : running) {  // each to its rung; those of one rung could be the slots of one array
      trials::Trial& trial = all[static_cast<std::size_t>(i)];
      trial.number = i;
      trial.params = configurations[static_cast<std::size_t>(i)];
      for (auto decision = search::Decision::kContinue; decision == search::Decision::kContinue;) {
        const int epoch = static_cast<int>(trial.epochs.size()) + 1;
        const double loss = loss_after(epoch, trial.params);
        trial.values = {loss};
        trial.epochs.push_back({epoch, {{"loss", loss}}});
        decision = hyperband->report(i, epoch, loss);
        trial.state = decision == search::Decision::kComplete ? trials::State::kComplete : trials::State::kPruned;
      }
    }
    running.clear();
    for (const search::Verdict& verdict : hyperband->take_verdicts()) {
      if (verdict.decision == search::Decision::kContinue) running.push_back(verdict.trial);
    }
  }

  for (const trials::Trial& trial : all) {
    std::printf("configuration %d: lr %s, %zu epochs, loss %.4f, %s\n", trial.number,
                trials::to_text(trial.params[0].second).c_str(), trial.epochs.size(), *trial.value(),
                name_of(trial.state));
  }
  std::printf("best: configuration %d\n", trials::best_of(all, trials::Goal::kMinimize)->number);
}
