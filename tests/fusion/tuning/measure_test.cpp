#include "fusion/measure.hpp"

#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

// Every look at it costs a tenth of a second, so that budgets can be counted.
class TickingClock final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override { return {}; }
  [[nodiscard]] double seconds() const override { return now_ += 0.1; }

 private:
  mutable double now_ = 0;
};

// One whose looks cost ever more: what is timed later seems slower.
class TiringClock final : public Clock {
 public:
  [[nodiscard]] Utc utc() const override { return {}; }
  [[nodiscard]] double seconds() const override { return now_ += tick_ *= 1.2; }

 private:
  mutable double now_ = 0, tick_ = 1e-6;
};

// One whose first looks cost a second, and others `later`: somebody had the machine while the first candidate was
// timed.
class DisturbedClock final : public Clock {
 public:
  DisturbedClock(int disturbed, double later) : disturbed_(disturbed), later_(later) {}
  [[nodiscard]] Utc utc() const override { return {}; }
  [[nodiscard]] double seconds() const override { return now_ += ++looks_ <= disturbed_ ? 1.0 : later_; }

 private:
  int disturbed_;
  double later_;
  mutable double now_ = 0;
  mutable int looks_ = 0;
};

DeviceData data_of(const Model& model) {
  const Samples& samples = model.batch.parts[0];
  return {samples.inputs, samples.target, samples.target.size()};
}

MeasuredChoices choices(std::vector<std::tuple<int, int, double>> chunk_workers_seconds) {
  MeasuredChoices all;
  for (const auto& [chunk, workers, seconds] : chunk_workers_seconds) {
    all.candidates.push_back({chunked(chunk, {}, workers), seconds});
  }
  return all;
}

}  // namespace

TEST_CASE("the choice follows waves of chunks, not single chunks") {
  // One slot takes 1 s, 8 together 3 s; two workers.
  const MeasuredChoices table = choices({{1, 2, 1.0}, {8, 2, 3.0}});
  CHECK(table.best_for(1).lowering.chunk == 1);
  CHECK(table.best_for(6).lowering.chunk == 1);   // 3 waves of 1 s against one of 3 s: the earlier one
  CHECK(table.best_for(7).lowering.chunk == 8);   // 4 waves
  CHECK(table.best_for(16).lowering.chunk == 8);  // one wave of two chunks
  CHECK(table.best_for(18).lowering.chunk == 8);  // 2 waves: 6 s against 9 s
  CHECK(table.seconds_per_slot_step(16) == Approx(3.0 / 16));
}

TEST_CASE("measuring stays in its budget") {
  const Model model = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  const TickingClock clock;
  const DeviceData data = data_of(model);
  const auto count = [&](double slot_steps) {
    const MeasuredChoices found = measure(model.graph, model.recipe, data, {8, 2, slot_steps, 0.02}, at::kCPU, clock);
    return found.candidates.size();
  };
  CHECK(count(1) == 1);
  CHECK(count(1e9) > 5);
  const MeasuredChoices none = measure(model.graph, model.recipe, data, {8, 2, 0, 0.02}, at::kCPU, clock);
  CHECK(none.how == ChoiceOrigin::kNotMeasured);
  CHECK(none.best_for(8).lowering.chunk == 1);
}

TEST_CASE("chunks are widened as long as that helps") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  const auto widest = [&](const Clock& clock) {
    int chunk = 0;
    for (const Measured& one :
         measure(model.graph, model.recipe, data_of(model), {32, 1, 1e9, 0.02}, at::kCPU, clock).candidates) {
      chunk = std::max(chunk, one.lowering.chunk);
    }
    return chunk;
  };
  CHECK(widest(TickingClock()) == 32);
  CHECK(widest(TiringClock()) < 32);
  CHECK(widest(TiringClock()) >= 2);
}

TEST_CASE("a disturbance while the first candidate is timed is not held against it") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  const DisturbedClock clock(16, 1e-3);
  const auto found = measure(model.graph, model.recipe, data_of(model), {4, 2, 1e9, 0.02}, at::kCPU, clock);
  REQUIRE(found.candidates.size() > 2);
  for (const Measured& candidate : found.candidates) CHECK(candidate.wave_seconds < 0.01);
}

TEST_CASE("a disturbance of the first candidate does not decide where the budget is spent") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  const DisturbedClock clock(9, 0.4);
  MeasureOptions options{1, 1, 750, 0.02};  // 15 s: enough to time two ways that seem to take a second
  options.ways = lowering_candidates(model.graph, model.recipe, options, at::kCPU);
  options.ways.resize(2);
  const MeasuredChoices found = measure(model.graph, model.recipe, data_of(model), options, at::kCPU, clock);
  REQUIRE(found.candidates.size() == 2);
  CHECK(found.best_for(1).lowering == options.ways.front());
}

TEST_CASE("what lost clearly for a graph of the same ops is not timed where the first candidate is as fast") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  const TickingClock clock;  // to which all ways are equally fast
  MeasureOptions options{1, 1, 1e9, 0.02};
  const auto found = [&] { return measure(model.graph, model.recipe, data_of(model), options, at::kCPU, clock); };
  const MeasuredChoices all = found();
  REQUIRE(all.candidates.size() >= 2);
  REQUIRE(all.complete);
  MeasuredChoices alike = all;
  const auto with = [&](double first, double others) {
    for (Measured& one : alike.candidates) one.wave_seconds = all.candidates.front().wave_seconds * others;
    alike.candidates.front().wave_seconds = all.candidates.front().wave_seconds * first;
    options.alike = &alike;
    return found();
  };
  const MeasuredChoices one = with(1, 1.5);
  CHECK(one.candidates.size() == 1);
  CHECK_FALSE(one.complete);
  CHECK(with(1, 1).candidates.size() == all.candidates.size());
  CHECK(with(5, 50).candidates.size() == all.candidates.size());   // not as fast here as there
  CHECK(with(0.2, 5).candidates.size() == all.candidates.size());  // nor there as here
  alike.candidates.resize(1);
  CHECK(with(1, 1).candidates.size() == 1);  // the others were not worth timing
  alike.complete = false;
  CHECK(with(1, 1).candidates.size() == all.candidates.size());  // or there was no time for them
}

TEST_CASE("every candidate trains the same, and goes on from a saved slot bit for bit") {
  const Model model =
      GENERATE(conv_net(DType::kFloat64, OptimizerKind::kAdam), mlp(DType::kFloat64, OptimizerKind::kSgd));
  const MeasuredChoices all =
      measure(model.graph, model.recipe, data_of(model), {4, 2, 1e9, 0.02}, at::kCPU, TickingClock());
  std::vector<double> expected;
  for (const Measured& candidate : all.candidates) {
    INFO(model.name << ": " << candidate.lowering.to_text());
    Array array(model.graph, model.recipe, {.lowering = candidate.lowering, .width = 3, .study_seed = 5});
    Array other(model.graph, model.recipe, {.lowering = candidate.lowering, .width = 3, .study_seed = 5});
    for (int b = 0; b < 3; ++b) array.admit(b, trial(model, b));
    for (int s = 0; s < 3; ++s) step_all(array, model.batch);
    for (int b = 0; b < 3; ++b) other.insert(2 - b, trial(model, b), array.extract(b));
    std::vector<double> losses, resumed;
    for (int s = 0; s < 2; ++s) losses = step_all(array, model.batch);
    for (int s = 0; s < 2; ++s) resumed = step_all(other, model.batch);
    losses.resize(3);
    if (expected.empty()) expected = losses;
    for (std::size_t b = 0; b < 3; ++b) {
      CHECK(losses[b] == Approx(expected[b]).epsilon(1e-9));
      CHECK(resumed[2 - b] == losses[b]);
    }
  }
}

}  // namespace hfta::fusion::testing
