// Export of trials that are not done: what a budget leaves RUNNING.

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "engine/export/export.hpp"
#include "fusion/data/safetensors.hpp"
#include "storage/checkpoints.hpp"
#include "study_fixture.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::EpochRecord;
using trials::State;
using trials::Trial;

namespace {

// Four slots of trials of 27 epochs, which the budget ends.
StudyConfig config_of(int budget) {
  StudyConfig config = random_config(20);
  config.width = 4;
  config.budget.epochs = budget;
  config.task = [task = config.task](const trials::Params& params) {
    TaskSpec spec = task(params);
    spec.recipe.epochs = 27;
    return spec;
  };
  return config;
}

class Unfinished {
 public:
  explicit Unfinished(StudyConfig config) : study_(std::move(config)) {
    (void)study_.run();
    store_ = study_.open();
  }

  [[nodiscard]] std::vector<Trial> trials() { return study_.trials(); }
  [[nodiscard]] std::map<std::string, std::string> exported(std::optional<int> number) {
    storage::StudyStates states(study_.files, study_.checkpoints);
    const std::vector<ExportedFile> files =
        export_trial(study_.config, *store_, states, number, ExportFormat::kWeights);
    return fusion::parse_safetensors(files.at(0).bytes).metadata;
  }

 private:
  StudyFixture study_;
  std::unique_ptr<storage::Store> store_;
};

double accuracy(const EpochRecord& epoch) { return epoch.metrics.at("val_accuracy"); }

}  // namespace

TEST_CASE("a RUNNING trial is exported after its latest epoch, or its best one where that counts") {
  const bool select_best = GENERATE(false, true);
  CAPTURE(select_best);
  StudyConfig config = config_of(80);
  config.select_best = select_best;
  Unfinished study(std::move(config));
  int running = 0, earlier = 0;
  for (const Trial& trial : study.trials()) {
    CAPTURE(trial.number);
    if (trial.state != State::kRunning || trial.epochs.empty()) continue;
    ++running;
    const auto best = std::max_element(trial.epochs.begin(), trial.epochs.end(),
                                       [](const auto& a, const auto& b) { return accuracy(a) < accuracy(b); });
    const EpochRecord& wanted = select_best ? *best : trial.epochs.back();
    earlier += wanted.epoch < trial.epochs.back().epoch ? 1 : 0;
    const auto metadata = study.exported(trial.number);
    CHECK(metadata.at("epoch") == std::to_string(wanted.epoch));
    CHECK(metadata.at("val_accuracy") == shortest(accuracy(wanted)));
  }
  CHECK(running == 4);
  CHECK((earlier > 0) == select_best);  // or the case shows nothing
}

TEST_CASE("who asks for a trial without weights is told of the RUNNING ones") {
  StudyConfig config = config_of(60);
  config.early_stopping = {{"asha"}};
  Unfinished study(std::move(config));
  const std::vector<Trial> all = study.trials();
  const auto pruned = std::find_if(all.begin(), all.end(), [](const Trial& t) { return t.state == State::kPruned; });
  REQUIRE(pruned != all.end());
  CHECK_THROWS_WITH(study.exported(pruned->number), Catch::EndsWith("; or one that is RUNNING and has a state"));
  Unfinished barely_begun(config_of(4));
  CHECK_THROWS_WITH(
      barely_begun.exported({}),
      "study 'digits': found none that is best (no trial is COMPLETE), wanted one to export; --trial takes "
      "a RUNNING one");
  CHECK(barely_begun.exported(0).at("epoch") == "1");
}
