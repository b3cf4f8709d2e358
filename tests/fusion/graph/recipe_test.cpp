#include "fusion/recipe.hpp"

#include <catch2/catch.hpp>
#include <limits>

namespace hfta::fusion::test {
namespace {

constexpr double kBase = 0.1;

struct RateCase {
  std::string name;
  Schedule schedule;
  double duration;
  std::vector<double> rates;  ///< At t = 0, 1, 2, ...
};

TEST_CASE("rates follow torch.optim.lr_scheduler", "[recipe]") {
  // Printed by torch 2.11: SGD at lr 0.1 under the scheduler named, param_groups[0]['lr'] before each step().
  const std::vector<RateCase> cases = {
      {"ConstantLR(1)", {}, 5, {0.1, 0.1, 0.1, 0.1, 0.1}},
      {"StepLR(3, 0.5)",
       {.kind = ScheduleKind::kStep, .step_size = 3, .gamma = 0.5},
       10,
       {0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025, 0.025, 0.0125, 0.0125}},
      {"CosineAnnealingLR(10), T_max from the duration",
       {.kind = ScheduleKind::kCosine},
       10,
       {0.1, 0.09755282581475769, 0.09045084971874738, 0.07938926261462367, 0.06545084971874739, 0.05000000000000001,
        0.03454915028125264, 0.020610737385376353, 0.009549150281252635, 0.002447174185242324, 0.0}},
      {"CosineAnnealingLR(7, 0.01)",
       {.kind = ScheduleKind::kCosine, .t_max = 7, .eta_min = 0.01},
       20,
       {0.1, 0.09554359905560886, 0.08305704108364301, 0.06501344202803415, 0.04498655797196586, 0.026942958916356993,
        0.014456400944391143, 0.01, 0.01445640094439114, 0.026942958916356986, 0.04498655797196585, 0.06501344202803411,
        0.083057041083643, 0.09554359905560887, 0.1}},
      {"LinearLR()",
       {.kind = ScheduleKind::kLinear},
       8,
       {0.03333333333333333, 0.04666666666666667, 0.060000000000000005, 0.07333333333333335, 0.08666666666666668, 0.1,
        0.1, 0.1, 0.1}},
      {"LinearLR(1, 0.1, 6)",
       {.kind = ScheduleKind::kLinear, .start_factor = 1, .end_factor = 0.1, .total_iters = 6},
       8,
       {0.1, 0.085, 0.07, 0.05500000000000001, 0.04000000000000001, 0.025000000000000005, 0.010000000000000002,
        0.010000000000000002, 0.010000000000000002}},
      {"SequentialLR([LinearLR(0.1, 1, 4), ConstantLR(1)], [4])",
       {.start_factor = 0.1, .warmup = 4},
       8,
       {0.010000000000000002, 0.03250000000000001, 0.055000000000000014, 0.07750000000000003, 0.1, 0.1, 0.1, 0.1, 0.1}},
      {"SequentialLR([LinearLR(0.25, 1, 3), CosineAnnealingLR(9, 0.001)], [3])",
       {.kind = ScheduleKind::kCosine, .t_max = 9, .eta_min = 0.001, .start_factor = 0.25, .warmup = 3},
       12,
       {0.025, 0.05, 0.07500000000000001, 0.1, 0.09701478472890247, 0.0884191999343894, 0.07525, 0.05909558479451306,
        0.04190441520548695, 0.02575000000000001, 0.012580800065610593, 0.003985215271097539, 0.001}},
      {"SequentialLR([LinearLR(0.1, 1, 4), CosineAnnealingLR(6)], [4]), T_max from the duration",
       {.kind = ScheduleKind::kCosine, .start_factor = 0.1, .warmup = 4},
       10,
       {0.010000000000000002, 0.03250000000000001, 0.055000000000000014, 0.07750000000000003, 0.1, 0.09330127018922195,
        0.07500000000000001, 0.05, 0.025000000000000012, 0.006698729810778065, 0.0}},
      {"SequentialLR([LinearLR(0.5, 1, 1), CosineAnnealingLR(9, 0.02)], [1]), per step",
       {.kind = ScheduleKind::kCosine, .per_step = true, .eta_min = 0.02, .start_factor = 0.5, .warmup = 1},
       10,
       {0.05, 0.1, 0.09758770483143635, 0.09064177772475912, 0.08, 0.06694592710667722, 0.053054072893322785,
        0.04000000000000001, 0.029358222275240882, 0.02241229516856367, 0.02}},
      {"SequentialLR([LinearLR(1/3, 1, 3), CosineAnnealingLR(1)], [3]), T_max from the duration",
       {.kind = ScheduleKind::kCosine, .warmup = 3},
       4,
       {0.03333333333333333, 0.05555555555555556, 0.07777777777777778, 0.1, 0.0}},
      {"SequentialLR([LinearLR(0.2, 1, 2), StepLR(5, 0.1)], [2])",
       {.kind = ScheduleKind::kStep, .step_size = 5, .gamma = 0.1, .start_factor = 0.2, .warmup = 2},
       12,
       {0.020000000000000004, 0.06000000000000001, 0.1, 0.1, 0.1, 0.1, 0.1, 0.010000000000000002, 0.010000000000000002,
        0.010000000000000002, 0.010000000000000002, 0.010000000000000002, 0.0010000000000000002}},
      {"SequentialLR([LinearLR(0.25, 1, 4), LinearLR(0.25, 0.01, 6)], [4])",
       {.kind = ScheduleKind::kLinear, .start_factor = 0.25, .end_factor = 0.01, .total_iters = 6, .warmup = 4},
       10,
       {0.025, 0.043750000000000004, 0.06250000000000001, 0.08125000000000002, 0.025, 0.021, 0.017, 0.013, 0.009, 0.005,
        0.0010000000000000009}},
      {"SequentialLR([LinearLR(1/3, 1, 2), StepLR(2, 0.3)], [2])",
       {.kind = ScheduleKind::kStep, .step_size = 2, .gamma = 0.3, .warmup = 2},
       9,
       {0.03333333333333333, 0.06666666666666667, 0.1, 0.1, 0.03, 0.03, 0.009, 0.009, 0.0026999999999999997,
        0.0026999999999999997}},
      {"SequentialLR([LinearLR(0.5, 1, 2), LinearLR(0.5, 0.05, 4)], [2])",
       {.kind = ScheduleKind::kLinear, .start_factor = 0.5, .end_factor = 0.05, .total_iters = 4, .warmup = 2},
       8,
       {0.05, 0.07500000000000001, 0.05, 0.03875000000000001, 0.027500000000000007, 0.016250000000000004, 0.005, 0.005,
        0.005}},
  };
  for (const RateCase& c : cases) {
    for (std::size_t t = 0; t < c.rates.size(); ++t) {
      CAPTURE(c.name, t);
      // torch multiplies its way along, which adds rounding of its own.
      CHECK(learning_rate(c.schedule, kBase, static_cast<double>(t), c.duration) ==
            Approx(c.rates[t]).epsilon(1e-13).margin(0));
    }
  }
}

TEST_CASE("the cosine is exact near its end", "[recipe]") {
  const Schedule cosine{.kind = ScheduleKind::kCosine};
  // sin^2(pi / 2e6) to 17 digits: one step before the end of a million.
  CHECK(learning_rate(cosine, 1, 999999, 1e6) == Approx(2.4674011002703103e-12).epsilon(1e-14).margin(0));
  CHECK(learning_rate(cosine, 1, 1e6, 1e6) == 0.0);
  CHECK(learning_rate(cosine, 1, 0, 1e6) == 1.0);
}

TEST_CASE("degenerate durations give finite rates", "[recipe]") {
  CHECK(learning_rate({.kind = ScheduleKind::kCosine, .warmup = 5}, kBase, 5, 5) == kBase);
  CHECK(learning_rate({.kind = ScheduleKind::kCosine}, kBase, 0, 0) == kBase);
  CHECK(learning_rate({.kind = ScheduleKind::kLinear, .end_factor = 0.5, .total_iters = 0}, kBase, 0, 5) == kBase / 2);
}

TEST_CASE("names are those of the config", "[recipe]") {
  CHECK(std::string(name_of(Loss::kCrossEntropy)) == "cross_entropy");
  CHECK(std::string(name_of(Loss::kMse)) == "mse");
  CHECK(std::string(name_of(Loss::kBceWithLogits)) == "bce_with_logits");
  CHECK(std::string(name_of(ScheduleKind::kConstant)) == "constant");
  CHECK(std::string(name_of(ScheduleKind::kStep)) == "step");
  CHECK(std::string(name_of(ScheduleKind::kCosine)) == "cosine");
  CHECK(std::string(name_of(ScheduleKind::kLinear)) == "linear");
}

}  // namespace
}  // namespace hfta::fusion::test
