// Export of a study of several objectives, whose best trials are a front.

#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/export/export.hpp"
#include "fusion/data/safetensors.hpp"
#include "storage/checkpoints.hpp"
#include "study_fixture.hpp"
#include "trials/pareto.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using trials::State;
using trials::Trial;

TEST_CASE("export wants to be told which trial of a front, unless there is one") {
  StudyFixture study(objectives_config("nsga2", 40));
  study.world.counts_parameters = true;
  study.world.diverge = {3};
  (void)study.run();
  const std::vector<int> front = trials::pareto_front(study.trials(), study.config.objectives).numbers();
  REQUIRE(front.size() > 1);
  const std::unique_ptr<storage::Store> store = study.open();
  storage::StudyStates states(study.files, study.checkpoints);
  const auto exported = [&](std::optional<int> number) {
    return export_trial(study.config, *store, states, number, ExportFormat::kWeights).front().bytes;
  };
  CHECK_THROWS_WITH(exported({}), Catch::Contains("--trial: found nothing, wanted one of the") &&
                                      Catch::Contains("on the Pareto front of study 'digits': " +
                                                      std::to_string(front[0]) + ", " + std::to_string(front[1])));
  const std::vector<Trial> all = study.trials();
  for (const int number : front) {
    const std::vector<std::byte> file = exported(number);
    const auto metadata = fusion::parse_safetensors(file).metadata;
    CHECK(metadata.at("trial") == std::to_string(number));
    CHECK(metadata.contains("val_accuracy"));
    CHECK(metadata.contains(kParameterCount));
  }
  const auto other = std::find_if(all.begin(), all.end(), [&](const Trial& trial) {
    return trial.state == State::kComplete && std::count(front.begin(), front.end(), trial.number) == 0;
  });
  REQUIRE(other != all.end());
  CHECK_THROWS_WITH(exported(other->number), Catch::Contains("wanted one of the Pareto front: kept are"));
}
