// Steps that are replayed are those made op by op, bit for bit, whatever changes between them; and what changes asks
// for no new graph. The graphs are fakes: recording_graphs.hpp.
#include <limits>
#include <memory>

#include "fusion/eager/program.hpp"
#include "fusion/passes/schema.hpp"
#include "recording_graphs.hpp"
#include "tests/fusion/array/adversarial.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/eager/op_cases.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 25;  // 4 steps of 6 samples and one of 1
constexpr int kWidth = 4;
constexpr int kNever = std::numeric_limits<int>::max();

Setting setting(Model model, std::int64_t classes, const Shape& input) {
  return random_setting(std::move(model), classes, input, {kSamples, 12, 41});
}

Model with_dropouts(OptimizerKind kind, DType dtype) {
  Model model =
      classifier("dropouts",
                 {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{16}}), layer("dropout", {0.3}),
                  layer("relu"), layer("linear", {std::int64_t{16}, std::int64_t{16}}), layer("dropout", {0.2}),
                  layer("linear", {std::int64_t{16}, std::int64_t{4}})},
                 {3, 4}, 4, dtype, kind);
  const auto last = std::find_if(model.graph.nodes.rbegin(), model.graph.nodes.rend(),
                                 [](const Node& node) { return node.op == "aten::dropout"; });
  last->op = "aten::alpha_dropout";  // of the same schema
  return model;
}

std::vector<Setting> settings() {
  return {setting(with_dropouts(OptimizerKind::kSgd, DType::kFloat32), 4, {3, 4}),
          setting(with_dropouts(OptimizerKind::kAdam, DType::kFloat64), 4, {3, 4}),
          setting(conv_net(DType::kFloat32, OptimizerKind::kAdamW), 5, {1, 8, 8}),
          setting(in_groups(conv_net(DType::kFloat64, OptimizerKind::kSgd)), 5, {1, 8, 8}),
          setting(accumulating(with_dropouts(OptimizerKind::kAdamW, DType::kFloat32)), 4, {3, 4}),
          setting(accumulating(in_groups(conv_net(DType::kFloat64, OptimizerKind::kSgd))), 5, {1, 8, 8}),
          adversarial_setting(DType::kFloat32, OptimizerKind::kRmsprop, {kSamples + 1, 12, 41}),
          setting(in_bfloat16(with_dropouts(OptimizerKind::kAdamW, DType::kFloat32)), 4, {3, 4}),
          setting(in_bfloat16(conv_net(DType::kFloat32, OptimizerKind::kSgd)), 5, {1, 8, 8})};
}

SlotInit scheduled(const Model& model, int b) {
  SlotInit init = trial(model, b);
  init.hyper.schedule.kind = b % 2 == 0 ? ScheduleKind::kCosine : ScheduleKind::kLinear;
  init.hyper.schedule.per_step = b % 2 == 0;
  if (b % 3 == 1) init.hyper.clip_norm = 0.05;
  return init;
}

/// An array whose steps are captured, but for the first `to_fail` that it tries.
struct Watched {
  std::shared_ptr<Captures> captures = std::make_shared<Captures>();
  std::unique_ptr<Array> array;

  Watched(const Model& model, const Lowering& lowering, int width, int to_fail = 0) {
    captures->to_fail = to_fail;
    array = std::make_unique<Array>(
        model.graph, model.recipe,
        ArrayOptions{.lowering = lowering, .width = width, .study_seed = 5, .graphs = recording_graphs(captures)});
  }
};

using Curves = std::vector<std::map<std::string, double>>;

struct Outcome {
  Curves results;  // of every slot and epoch, in order
  std::vector<StateBytes> states;
  bool operator==(const Outcome&) const = default;
};

// Eleven epochs in which a slot is cleared, filled with a newcomer at an epoch of its own, another goes on with other
// numbers, and in the end another slot yet is somewhere else.
Outcome story(Array& array, const Setting& s) {
  Outcome outcome;
  const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
  const auto run = [&](int count) {
    for (int e = 0; e < count; ++e) {
      for (EpochResult& r : epochs.run(array)) outcome.results.push_back(std::move(r.metrics));
    }
  };
  for (int b = 0; b < kWidth; ++b) array.admit(b, scheduled(s.model, b));
  run(3);
  array.clear(1);
  run(1);
  array.admit(1, scheduled(s.model, 7));
  run(3);
  const StateBytes state = array.extract(2);
  array.clear(2);
  array.insert(2, scheduled(s.model, 4), state);
  run(2);
  array.clear(1);
  array.clear(3);
  array.admit(3, scheduled(s.model, 8));
  run(2);
  for (const int b : {0, 2, 3}) outcome.states.push_back(array.extract(b));
  return outcome;
}

void check_close(const Curves& found, const Curves& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [name, value] : expected[i]) CHECK(found[i].at(name) == Approx(value).epsilon(tolerance));
  }
}

}  // namespace

TEST_CASE("replayed steps are those made op by op, bit for bit") {
  const int chunk = GENERATE(1, 2, 4);
  const int workers = chunk == 4 ? 1 : 2;
  for (const Setting& s : settings()) {
    INFO(s.model.name << ", chunk " << chunk);
    Watched eager(s.model, chunked(chunk, {}, workers), kWidth, kNever);
    Watched captured(s.model, chunked(chunk, {}, workers), kWidth);
    Array plain(s.model.graph, s.model.recipe,
                {.lowering = chunked(chunk, {}, workers), .width = kWidth, .study_seed = 5});
    const Outcome expected = story(*eager.array, s);
    CHECK(story(*captured.array, s) == expected);
    CHECK(eager.array->step_counts().replayed == 0);
    CHECK(captured.array->step_counts().replayed > 3 * captured.array->step_counts().eager);
    CHECK(captured.array->step_counts().why_eager.empty());
    if (s.model.recipe.dtype != DType::kFloat64) continue;  // in float32 roundings grow too much to be compared
    check_close(expected.results, story(plain, s).results, 1e-9);
    CHECK(plain.step_counts().eager == 0);
  }
}

TEST_CASE("a graph is made for each batch size and way of sharing samples, and for nothing else") {
  const Setting s = settings().front();
  Watched whole(s.model, chunked(4), kWidth);
  static_cast<void>(story(*whole.array, s));
  StepCounts counts = whole.array->step_counts();
  // Full and last batches, with all slots at one epoch, with one elsewhere, and with another; two of its last ones only
  // warm up.
  CHECK(counts.captured == 5);
  CHECK(counts.eager == 2 * 6);
  CHECK(counts.replayed == 11 * 5 - 2 * 6);
  CHECK(whole.captures->tried == 5);

  Watched alone(s.model, chunked(1), kWidth);
  static_cast<void>(story(*alone.array, s));
  counts = alone.array->step_counts();
  CHECK(counts.captured == 2 * kWidth);
  CHECK(counts.eager == 2 * 2 * kWidth);
  CHECK(counts.replayed == (11 * kWidth - 3) * 5 - 2 * 2 * kWidth);
}

TEST_CASE("another width, or another way to run, asks for new graphs") {
  const Setting s = settings().front();
  Watched watched(s.model, chunked(2), 2);
  const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
  for (int b = 0; b < 2; ++b) watched.array->admit(b, scheduled(s.model, b));
  const auto captured_by_epochs = [&](int count) {
    const int before = watched.captures->tried;
    for (int e = 0; e < count; ++e) static_cast<void>(epochs.run(*watched.array));
    return watched.captures->tried - before;
  };
  CHECK(captured_by_epochs(3) == 2);
  CHECK(captured_by_epochs(2) == 0);
  watched.array->resize(4);
  CHECK(watched.array->step_counts().captured == 0);
  CHECK(captured_by_epochs(3) == 2);
  watched.array->admit(2, scheduled(s.model, 2));
  CHECK(captured_by_epochs(3) == 2);  // the other chunk's
  watched.array->lower(chunked(4));
  CHECK(captured_by_epochs(1) == 1);  // two of last batches have still to warm up
}

TEST_CASE("a capture that fails leaves nothing behind, is tried once more, and given up") {
  const int chunk = GENERATE(1, 4);
  const Setting s = settings()[2];
  Watched eager(s.model, chunked(chunk), kWidth, kNever), failing(s.model, chunked(chunk), kWidth, 1);
  const Outcome expected = story(*eager.array, s);
  CHECK(story(*failing.array, s) == expected);
  CHECK(failing.array->step_counts().captured > 0);
  CHECK_THAT(failing.array->step_counts().why_eager, Catch::Contains("told to fail"));
  const int keys = chunk == 1 ? 2 * kWidth : 5;
  CHECK(failing.captures->tried == keys + 1);
  CHECK(eager.captures->tried == 2 * keys);
  CHECK(eager.array->step_counts().captured == 0);
}

TEST_CASE("memory that runs out within a capture changes no bit, and no op's way to run") {
  Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  const auto tanh = std::find_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                                 [](const Node& node) { return node.op == "aten::tanh"; });
  tanh->op = "aten::atan";  // of the same schema
  const auto own_way = std::pair<std::string, std::string>("aten::atan", "batched");
  const Setting s = setting(std::move(model), 4, {3, 4});
  Watched eager(s.model, chunked(4), kWidth, kNever), starved(s.model, chunked(4), kWidth);
  const std::string op = GENERATE("aten::atan", "aten::add_");  // within functorch, and beside it
  starved.captures->starved_op = op;
  const Outcome expected = story(*eager.array, s);
  CHECK(story(*starved.array, s) == expected);
  CHECK(starved.captures->starved_op.empty());
  CHECK_THAT(starved.array->step_counts().why_eager, Catch::Contains(op + ": out of memory"));
  CHECK(starved.array->step_counts().captured == 5);
  for (const Watched* watched : {&eager, &starved}) {
    CHECK_THAT(watched->array->choices(), Catch::VectorContains(own_way));
  }
}

TEST_CASE("every op with a rule is replayed as it is called") {
  for (const OpCase& c : op_cases()) {
    const Model model = model_of(c);
    for (const int slots : {1, 3}) {
      INFO(c.op << " " << c.note << ", " << slots << " slots");
      Watched eager(model, chunked(slots), slots, kNever), captured(model, chunked(slots), slots);
      for (int b = 0; b < slots; ++b) {
        eager.array->admit(b, trial(model, b));
        captured.array->admit(b, trial(model, b));
      }
      at::Tensor expected = eager.array->fresh_losses(0).front(), found = captured.array->fresh_losses(0).front();
      for (int step = 0; step < 5; ++step) {
        eager.array->step(0, model.batch, rates_of(*eager.array, 0), expected);
        captured.array->step(0, model.batch, rates_of(*captured.array, 0), found);
      }
      CHECK(at::equal(found, expected));
      for (int b = 0; b < slots; ++b) CHECK(captured.array->extract(b) == eager.array->extract(b));
      INFO(captured.array->step_counts().why_eager);
      CHECK(captured.array->step_counts().replayed == 3);
    }
  }
}

TEST_CASE("what takes a searched number from the host, or gives the host one of the data, is never captured") {
  const auto reason = [](Node node, const std::vector<Value>& values) {
    Graph graph;
    graph.values = values;
    graph.inputs = {0};
    graph.hypers = {{"slope", 0.1}};
    graph.nodes = {std::move(node)};
    graph.outputs = {1};
    const SpecializedGraph reading = specialized(with_complete_arguments(graph), Purpose::kTraining);
    return std::pair(Program(reading, {}, chunked(1), at::kCPU).why_not_replayed(),
                     Program(reading, {}, chunked(3), at::kCPU).why_not_replayed());
  };
  const Value x{"x", {kBatch, 3}, DType::kFloat32, false}, y{"y", {kBatch, 3}, DType::kFloat32, false};
  const auto slope = reason({"aten::leaky_relu", {ValueId{0}, HyperRef{0}}, {1}, "a", "test", false, {}}, {x, y});
  CHECK(slope.first == "aten::leaky_relu takes a searched number from the host");
  CHECK(slope.second == slope.first);
  const auto rate = reason({"aten::dropout", {ValueId{0}, HyperRef{0}, true}, {1}, "a", "test", false, {}}, {x, y});
  CHECK(rate.first.empty());
  CHECK(rate.second.empty());
}

TEST_CASE("steps whose gradients are kept, and those of chunks that share layers, are made op by op") {
  const Setting s = settings().front();
  Watched keeps(s.model, chunked(4), kWidth);
  for (int b = 0; b < kWidth; ++b) keeps.array->admit(b, scheduled(s.model, b));
  keeps.array->keep_gradients();
  const Epochs epochs(s.model.recipe, {}, s.train, nullptr);
  static_cast<void>(epochs.run(*keeps.array));
  CHECK(keeps.captures->tried == 0);
  CHECK(keeps.array->gradients(0).front().second.defined());

  Model frozen = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  for (Weight& weight : frozen.graph.weights) weight.trained = weight.trained && weight.name.find("layers.8") == 0;
  const Setting f = setting(std::move(frozen), 5, {1, 8, 8});
  for (const int chunk : {2, 4}) {
    INFO("chunk " << chunk);
    Watched eager(f.model, chunked(chunk), kWidth, kNever), captured(f.model, chunked(chunk), kWidth);
    CHECK(captured.array->shares_layers() == (chunk == 2));
    CHECK(story(*captured.array, f) == story(*eager.array, f));
    CHECK((captured.captures->tried == 0) == (chunk == 2));
  }
}

TEST_CASE("a step on data that are seen once is not captured, and few graphs are kept") {
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  Watched eager(model, chunked(2), 2, kNever), captured(model, chunked(2), 2);
  std::vector<Batch> batches;
  for (std::uint64_t i = 0; i < 12; ++i) {
    batches.push_back({{{{counted_normal({6, 3, 4}, DType::kFloat32, 50 + i)}, counted_labels(6, 4, 70 + i)}}});
  }
  for (int b = 0; b < 2; ++b) {
    eager.array->admit(b, trial(model, b));
    captured.array->admit(b, trial(model, b));
  }
  at::Tensor expected = eager.array->fresh_losses(0).front(), found = captured.array->fresh_losses(0).front();
  const auto step = [&](const Batch& batch, int times) {
    for (int i = 0; i < times; ++i) {
      eager.array->step(0, batch, rates_of(*eager.array, 0), expected);
      captured.array->step(0, batch, rates_of(*captured.array, 0), found);
    }
  };
  for (const Batch& batch : batches) step(batch, 1);
  CHECK(captured.captures->tried == 0);
  for (const Batch& batch : batches) step(batch, 4);
  CHECK(captured.captures->tried == 12);
  step(batches.front(), 1);  // forgotten for the others' sake
  CHECK(captured.captures->tried == 12);
  CHECK(at::equal(found, expected));
  for (int b = 0; b < 2; ++b) CHECK(captured.array->extract(b) == eager.array->extract(b));
}

TEST_CASE("chunks that share a lane take turns") {
  const Setting s = settings().front();
  constexpr int kMany = 20;  // more than there are lanes
  Lowering many_threads = chunked(1);
  many_threads.workers = kMany;
  const Watched crowded(s.model, many_threads, kMany), alone(s.model, chunked(1), kMany);
  const Epochs epochs(s.model.recipe, {}, s.train, &s.validation);
  for (const Watched* watched : {&crowded, &alone}) {
    for (int b = 0; b < kMany; ++b) watched->array->admit(b, scheduled(s.model, b));
  }
  for (int e = 0; e < 3; ++e) {
    const std::vector<EpochResult> found = epochs.run(*crowded.array), expected = epochs.run(*alone.array);
    for (std::size_t b = 0; b < kMany; ++b) CHECK(found[b].metrics == expected[b].metrics);
  }
  CHECK(crowded.captures->crowded == 0);
  CHECK(crowded.array->step_counts().replayed > 0);
}

}  // namespace hfta::fusion::testing
