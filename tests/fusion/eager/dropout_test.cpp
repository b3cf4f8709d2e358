
#include <numeric>

#include "base/random.hpp"
#include "fusion/random/draws.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {

TEST_CASE("masks are Philox at the element's counter") {
  const std::uint64_t key = 0x0123456789abcdef, step = (std::uint64_t{5} << 32) + 9;
  std::vector<double> mask(203);
  fill_dropout_mask(mask.data(), mask.size(), 0.25, key, 3, step);
  for (std::size_t i = 0; i < mask.size(); ++i) {
    const auto block = philox({static_cast<std::uint32_t>(i / 4), 3, static_cast<std::uint32_t>(step),
                               static_cast<std::uint32_t>(step >> 32)},
                              {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)});
    const double u = block[i % 4] * 0x1.0p-32;
    CHECK(mask[i] == (u < 0.75 ? 1 / 0.75 : 0.0));
  }
}

TEST_CASE("masks have the rate they were asked for, and differ by step, node and trial") {
  const auto p = GENERATE(0.0, 0.1, 0.5, 0.9, 1.0);
  std::vector<float> mask(100000);
  const std::uint64_t key = dropout_key(1, 2);
  fill_dropout_mask(mask.data(), mask.size(), p, key, 0, 0);
  const double dropped = static_cast<double>(std::count(mask.begin(), mask.end(), 0.0f)) / 1e5;
  CHECK(dropped == Approx(p).margin(0.006));
  if (p == 0.0 || p == 1.0) return;
  CHECK(std::accumulate(mask.begin(), mask.end(), 0.0) / 1e5 == Approx(1).margin(0.02 / (1 - p)));
  const auto differs = [&](std::uint64_t other_key, std::uint32_t node, std::uint64_t step) {
    std::vector<float> other(mask.size());
    fill_dropout_mask(other.data(), other.size(), p, other_key, node, step);
    return other != mask;
  };
  CHECK_FALSE(differs(key, 0, 0));
  CHECK(differs(key, 0, 1));
  CHECK(differs(key, 1, 0));
  CHECK(differs(dropout_key(1, 3), 0, 0));
  CHECK(differs(dropout_key(2, 2), 0, 0));
}

TEST_CASE("dropout is the same at any width, and off in evaluation") {
  const Model model = classifier("dropout",
                                 {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{64}}),
                                  layer("dropout", {0.5}), layer("linear", {std::int64_t{64}, std::int64_t{4}})},
                                 {3, 4}, 4, DType::kFloat64);
  Array alone(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5}),
      wide(model.graph, model.recipe, {.lowering = chunked(4), .width = 4, .study_seed = 5});
  alone.admit(0, trial(model, 2));
  for (int b = 0; b < 4; ++b) wide.admit(b, trial(model, b));
  for (int s = 0; s < 5; ++s) {
    CHECK(step_all(wide, model.batch)[2] == Approx(step_all(alone, model.batch)[0]).epsilon(1e-12));
  }
  CHECK(wide.predict(0, model.batch.parts[0]).equal(wide.predict(0, model.batch.parts[0])));
}

}  // namespace hfta::fusion::testing
