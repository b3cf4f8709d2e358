// What an epoch's metrics say of a trial.

#include "engine/driver/goals/measure.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace hfta;
using namespace hfta::engine;

TEST_CASE("a measurement is a value, or the reason of a failure") {
  const double nan = std::nan("");
  struct Case {
    double train_loss, val_loss, val_r2;
    const char* failure;
  };
  const Case cases[] = {{0.5, 0.6, 0.1, ""},
                        {nan, 0.6, 0.1, "train_loss is nan at epoch 4; finite until epoch 3"},
                        {nan, nan, nan, "train_loss is nan at epoch 4; finite until epoch 3"},
                        {0.5, HUGE_VAL, 0.1, "val_loss is inf at epoch 4; finite until epoch 3"},
                        {-HUGE_VAL, 0.6, 0.1, "train_loss is -inf at epoch 4; finite until epoch 3"},
                        {0.5, 0.6, nan, ""}};  // another metric may be undefined
  for (const Case& c : cases) {
    const Measurement m =
        measure({{"train_loss", c.train_loss}, {"val_loss", c.val_loss}, {"val_r2", c.val_r2}}, {{"val_loss"}}, 4);
    CHECK(m.failure == c.failure);
    if (std::isfinite(c.val_loss)) CHECK(m.values == std::vector<double>{c.val_loss});
  }
  CHECK_THROWS_WITH(measure({{"train_loss", 1.0}}, {{"val_loss"}}, 1), Catch::Contains("'val_loss'"));
}
