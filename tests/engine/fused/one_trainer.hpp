#pragma once
/// A trainer on a CPU with the seams that it uses, for tests that open arrays themselves.

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "engine/config.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "tests/source_folder.hpp"

namespace hfta::engine::testing {

/// Of a study on the built-in data, as one device of `sharers`; nothing that is measured is remembered.
[[nodiscard]] inline TrainerOptions options_of(const std::string& study, const std::vector<Override>& overrides,
                                               int sharers = 1) {
  return {parse_config(study, "s.yaml", overrides), "cpu", "cpu", sharers, hfta::testing::source_folder() / "data", ""};
}

struct OneTrainer {
  SystemFiles files;
  SystemClock clock;
  FusedTrainer trainer;

  explicit OneTrainer(const TrainerOptions& options) : trainer(options, files, clock) {}
};

}  // namespace hfta::engine::testing
