// What the table of executors answers, whoever is in it.
#include "fusion/ways.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "fusion/executors/executors.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"
#include "tests/fusion/capture/recording_graphs.hpp"

namespace hfta::fusion::testing {
namespace {

using Refused = std::vector<std::pair<std::string, std::string>>;

std::int64_t bytes_of_trained(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const Weight& weight : graph.weights) {
    if (weight.trained) bytes += size_of(weight.dtype) * elements_of(weight.shape, 1);
  }
  return bytes;
}

}  // namespace

TEST_CASE("each row of the table has a name, and the ways to run are those of the rows that can") {
  const Model model =
      GENERATE(mlp(DType::kFloat32, OptimizerKind::kAdam), in_bfloat16(mlp(DType::kFloat32, OptimizerKind::kAdam)));
  const auto captures = std::make_shared<Captures>();
  const auto graphs = GENERATE_COPY(std::shared_ptr<StepGraphBackend>(), recording_graphs(captures));
  const WayQuestion question{model.graph, model.recipe, at::kCPU, 4, 2, graphs.get()};
  INFO(model.name << (graphs ? ", captured" : ""));
  const Refused refused = ways_refused(question);
  const std::vector<Lowering> ways = ways_to_run(question);
  REQUIRE_FALSE(ways.empty());
  for (const ExecutorKind& kind : executor_kinds()) {
    const bool is_refused =
        std::any_of(refused.begin(), refused.end(), [&](const auto& entry) { return entry.first == kind.name; });
    CHECK(is_refused == !kind.why_not(question).empty());
    const bool is_way =
        std::any_of(ways.begin(), ways.end(), [&](const Lowering& way) { return way.executor == kind.name; });
    CHECK_FALSE((is_refused && is_way));
  }
  for (const Lowering& way : ways) {
    INFO(way.to_text());
    CHECK(is_runnable(way, at::kCPU, graphs.get()));
    CHECK_NOTHROW(Array(model.graph, model.recipe, {.lowering = way, .width = 4, .study_seed = 5, .graphs = graphs}));
    CHECK(slots_at_work(way, 4, at::kCPU) <= 4);
    CHECK(slots_at_work(way, 4, at::kCPU) >= std::min(way.chunk, 4));
    CHECK(slots_at_work(way, 4, at::kMeta) == 4);
  }
}

TEST_CASE("why something cannot run is told in words") {
  const auto refused = [](const Model& model, const at::Device& device, const StepGraphBackend* graphs) {
    return ways_refused({model.graph, model.recipe, device, 4, 2, graphs});
  };
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  CHECK(refused(model, at::kCPU, nullptr) == Refused{{"captured", "a CPU has no graphs of steps"}});
  const auto graphs = recording_graphs(std::make_shared<Captures>());
  CHECK(refused(model, at::kCPU, graphs.get()).empty());
  const Refused rough = refused(in_bfloat16(model), at::kCPU, graphs.get());
  REQUIRE(rough.size() == 1);
  CHECK(rough[0].first == "compiled");
  CHECK_THAT(rough[0].second, Catch::Contains("bfloat16"));
  CHECK(refused(model, at::kMeta, nullptr) ==
        Refused{{"compiled", "kernels are compiled for a CPU"}, {"captured", "this build has no kernels for meta"}});
}

TEST_CASE("memory is that of who runs; of compiled slots to the byte") {
  const Model model =
      GENERATE(mlp(DType::kFloat32, OptimizerKind::kAdam), conv_net(DType::kFloat64, OptimizerKind::kSgd));
  const MemoryPolicy policy = GENERATE(MemoryPolicy::kKeep, MemoryPolicy::kAuto, MemoryPolicy::kRecompute);
  INFO(model.name << ", " << name_of(policy));
  const WayQuestion question{model.graph, model.recipe, at::kCPU, 4, 2, nullptr, policy};
  const std::vector<Lowering> ways = ways_to_run(question);
  const std::vector<WayMemory> needs = memory_of(question, ways);
  REQUIRE(needs.size() == ways.size());
  for (std::size_t i = 0; i < ways.size(); ++i) {
    INFO(ways[i].to_text());
    const bool compiled = ways[i].executor == "compiled";
    CHECK(needs[i].slot == (compiled ? 0 : bytes_of_trained(model.graph)));  // gradients
    Array array(model.graph, model.recipe, {.lowering = ways[i], .width = 4, .study_seed = 5});
    for (int b = 0; b < 4; ++b) array.admit(b, trial(model, b));
    static_cast<void>(step_all(array, model.batch));
    const std::int64_t beside = array.held_bytes() - 4 * array.bytes_per_slot() - array.shared_bytes();
    const std::int64_t predicted = 4 * needs[i].slot + slots_at_work(ways[i], 4, at::kCPU) * needs[i].at_work;
    if (compiled) {
      CHECK(beside == predicted);
    } else {
      CHECK(beside <= predicted);
    }
  }
}

TEST_CASE("ways of stages are those of who runs them, whose threads take turns; memory is the mean over stages") {
  const Model model = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  const WayQuestion whole{model.graph, model.recipe, at::kCPU, 8, 2, nullptr, MemoryPolicy::kAuto};
  WayQuestion question = whole;
  question.stages = 2;
  const char* const why = "it runs no stages of a pipeline";
  CHECK(ways_refused(question) == Refused{{"captured", why}, {"eager", why}});
  const std::vector<Lowering> ways = ways_to_run(question);
  REQUIRE_FALSE(ways.empty());
  const std::vector<WayMemory> needs = memory_of(question, ways), needs_whole = memory_of(whole, ways);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    INFO(ways[i].to_text());
    CHECK(ways[i].executor == "compiled");
    CHECK((ways[i].workers == 2 && ways[i].threads_per_worker == 1));
    CHECK(slots_at_work(ways[i], 100, at::kCPU, 2) == 6);
    CHECK(slots_at_work(ways[i], 5, at::kCPU, 2) == 5);
    CHECK(needs[i].at_work < needs_whole[i].at_work);
    CHECK(3 * needs[i].at_work > needs_whole[i].at_work);
  }
}

TEST_CASE("a policy has the ways that are its own, the ones that keep all first") {
  const Model model = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  const auto ways = [&](MemoryPolicy policy) {
    return ways_to_run({model.graph, model.recipe, at::kCPU, 4, 4, nullptr, policy});
  };
  const auto recomputes = [](const Lowering& way) { return way.recompute > 0; };
  const std::vector<Lowering> keep = ways(MemoryPolicy::kKeep), any = ways(MemoryPolicy::kAuto),
                              less = ways(MemoryPolicy::kRecompute);
  CHECK(std::none_of(keep.begin(), keep.end(), recomputes));
  CHECK(std::all_of(less.begin(), less.end(), recomputes));
  REQUIRE_FALSE(less.empty());
  CHECK(any.size() == keep.size() + less.size());
  const std::vector<std::string> first = {any[0].to_text(), any[1].to_text(), any[2].to_text()};
  CHECK(first ==
        std::vector<std::string>{"compiled, 4 x 1 threads", "compiled, 2 x 2 threads", "compiled, 1 x 4 threads"});
  const Refused refused = ways_refused({model.graph, model.recipe, at::kCPU, 4, 4, nullptr, MemoryPolicy::kRecompute});
  CHECK(std::count(
            refused.begin(), refused.end(),
            std::pair<std::string, std::string>{"eager", "it keeps all values, and memory.policy is recompute"}) == 1);
  // Where nothing can be computed again, all is kept.
  const Model flat = classifier("one layer", {layer("flatten"), layer("linear", {std::int64_t{12}, std::int64_t{4}})},
                                {3, 4}, 4, DType::kFloat32);
  for (const Lowering& way : ways_to_run({flat.graph, flat.recipe, at::kCPU, 4, 2, nullptr, MemoryPolicy::kRecompute}))
    CHECK(way.recompute == 0);
}

TEST_CASE("teams and what is computed again change no bit") {
  const Model model =
      GENERATE(conv_net(DType::kFloat32, OptimizerKind::kAdam), mlp(DType::kFloat32, OptimizerKind::kSgd));
  std::vector<StateBytes> expected;
  for (const Lowering& way : ways_to_run({model.graph, model.recipe, at::kCPU, 5, 4, nullptr, MemoryPolicy::kAuto})) {
    if (way.executor != "compiled") continue;
    INFO(model.name << ": " << way.to_text());
    Array array(model.graph, model.recipe, {.lowering = way, .width = 5, .study_seed = 5});
    for (int b = 0; b < 5; ++b) array.admit(b, trial(model, b));
    for (int s = 0; s < 3; ++s) step_all(array, model.batch);
    std::vector<StateBytes> states;
    for (int b = 0; b < 5; ++b) states.push_back(array.extract(b));
    if (expected.empty()) expected = states;
    CHECK((states == expected));
  }
  CHECK_FALSE(expected.empty());
}

TEST_CASE("a lowering goes to other threads where that changes no bit of it, by teams of each size") {
  const c10::Device cpu(c10::kCPU);
  Lowering compiled;
  compiled.executor = "compiled";
  compiled.recompute = 2;
  std::vector<std::string> ways;
  for (const Lowering& way : on_threads(compiled, 5, cpu, nullptr)) ways.push_back(way.to_text());
  CHECK(ways == std::vector<std::string>{"compiled, recompute 2, 5 x 1 threads", "compiled, recompute 2, 2 x 2 threads",
                                         "compiled, recompute 2, 1 x 5 threads"});
  CHECK(on_threads(Lowering{}, 5, cpu, nullptr).empty());
}

TEST_CASE("whichever row has other numbers of threads, in the midst of training they change no bit") {
  const Model model = conv_net(DType::kFloat32, OptimizerKind::kAdam);
  int tried = 0;
  for (const Lowering& way : ways_to_run({model.graph, model.recipe, at::kCPU, 3, 1, nullptr, MemoryPolicy::kAuto})) {
    std::vector<Lowering> others = on_threads(way, 3, at::kCPU, nullptr);
    const auto trained = [&](const std::vector<Lowering>& steps) {
      Array array(model.graph, model.recipe, {.lowering = way, .width = 3, .study_seed = 5});
      for (int b = 0; b < 3; ++b) array.admit(b, trial(model, b));
      for (const Lowering& one : steps) {
        array.lower(one);
        static_cast<void>(step_all(array, model.batch));
      }
      std::vector<StateBytes> states;
      for (int b = 0; b < 3; ++b) states.push_back(array.extract(b));
      return states;
    };
    const std::vector<StateBytes> expected = trained(std::vector<Lowering>(others.size() + 1, way));
    others.push_back(way);
    INFO(way.to_text());
    CHECK((trained(others) == expected));
    tried += others.size() > 1 ? 1 : 0;
  }
  CHECK(tried > 0);
}

TEST_CASE("forms of ops are those that the lowering may choose among") {
  const Model model = conv_net(DType::kFloat32, OptimizerKind::kSgd);
  const WayQuestion question{model.graph, model.recipe, at::kCPU, 4, 2};
  CHECK(op_forms(question, chunked(kCompiled)).empty());
  CHECK(op_forms(question, chunked(1)).empty());
  const auto forms = op_forms(question, chunked(4));
  REQUIRE_FALSE(forms.empty());
  for (const auto& [family, names] : forms) {
    for (const std::string& name : names) {
      CHECK_NOTHROW(
          Array(model.graph, model.recipe, {.lowering = chunked(4, {{family, name}}), .width = 4, .study_seed = 5}));
    }
  }
}

TEST_CASE("a lowering that nobody runs is an error of whoever asks for it") {
  Lowering unknown, wide = chunked(kCompiled);
  unknown.executor = "nobody";
  wide.chunk = 2;
  Lowering again = chunked(1);
  again.recompute = 1;  // what LibTorch runs keeps all
  const Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  for (const Lowering& lowering : {unknown, wide, again}) {
    CHECK_FALSE(is_runnable(lowering, at::kCPU, nullptr));
    CHECK_THROWS_WITH(Array(model.graph, model.recipe, {.lowering = lowering, .width = 2, .study_seed = 5}),
                      Catch::Contains("on cpu, which nothing runs"));
  }
}

TEST_CASE("a lowering in words") {
  CHECK(chunked(kCompiled, {}, 2).to_text() == "compiled, 2 x 1 threads");
  CHECK(chunked(1).to_text() == "chunk 1, 1 x 1 threads");
  CHECK(chunked(8, {{"conv", "unfolded"}, {"linear", "batched"}}, 2).to_text() ==
        "chunk 8, conv unfolded, linear batched, 2 x 1 threads");
  Lowering images = chunked(1), other = chunked(4), again = chunked(kCompiled);
  again.recompute = 2;
  CHECK(again.to_text() == "compiled, recompute 2, 1 x 1 threads");
  images.channels_last = true;
  other.executor = "other";
  CHECK(images.to_text() == "chunk 1, channels last, 1 x 1 threads");
  CHECK(other.to_text() == "other, chunk 4, 1 x 1 threads");
}

}  // namespace hfta::fusion::testing
