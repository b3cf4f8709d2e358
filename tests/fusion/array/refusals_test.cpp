// What an array refuses: arguments that nobody could run, each with a message that says what is wrong.

#include <functional>
#include <limits>
#include <memory>

#include "base/error.hpp"
#include "catch_after_torch.hpp"
#include "fusion/epochs.hpp"
#include "fusion/execution/thread_pool.hpp"
#include "fusion/gpu.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {
namespace {

struct Arguments {
  Model model = mlp(DType::kFloat32, OptimizerKind::kSgd);
  Lowering lowering = {};
  int width = 2;
  at::Device device = at::kCPU;

  [[nodiscard]] Array make() const {
    return {model.graph, model.recipe, {.lowering = lowering, .width = width, .study_seed = 5, .device = device}};
  }
};

}  // namespace

TEST_CASE("an array is not made of arguments that nobody could run") {
  struct Case {
    const char* says;
    std::function<void(Arguments&)> spoil;
  };
  const Case cases[] = {
      {"width: found -1", [](Arguments& a) { a.width = -1; }},
      {"lowering's chunk: found 0", [](Arguments& a) { a.lowering.chunk = 0; }},
      {"lowering's workers: found -1", [](Arguments& a) { a.lowering.workers = -1; }},
      {"lowering's workers: found 1000000", [](Arguments& a) { a.lowering.workers = 1'000'000; }},
      {"lowering's threads_per_worker: found 0", [](Arguments& a) { a.lowering.threads_per_worker = 0; }},
      {"lowering's recompute: found -1", [](Arguments& a) { a.lowering.recompute = -1; }},
      {"lowering: found nobody", [](Arguments& a) { a.lowering.executor = "nobody"; }},
      {"batch_size: found 0", [](Arguments& a) { a.model.recipe.batch_size = 0; }},
      {"epochs: found 0", [](Arguments& a) { a.model.recipe.epochs = 0; }},
      {"interval: found 0",
       [](Arguments& a) { a.model.recipe.compression = Compression{.sigma = 0.1, .interval = 0}; }},
      {"sigma: found -1", [](Arguments& a) { a.model.recipe.compression = Compression{.sigma = -1}; }},
      {"dtype: found int64", [](Arguments& a) { a.model.recipe.dtype = DType::kInt64; }},
      {"dtype: found float16", [](Arguments& a) { a.model.recipe.dtype = DType::kFloat16; }},
      {"found value 99", [](Arguments& a) { a.model.graph.outputs = {99}; }},
      {"found none, wanted one or more", [](Arguments& a) { a.model.graph.outputs = {}; }},
      {"found value 99", [](Arguments& a) { a.model.graph.nodes.front().args.front() = ValueId{99}; }},
      {"device: found meta", [](Arguments& a) { a.device = at::kMeta; }},
  };
  for (const Case& c : cases) {
    Arguments arguments;
    CHECK_NOTHROW(arguments.make());
    c.spoil(arguments);
    INFO(c.says);
    CHECK_THROWS_WITH(arguments.make(), Catch::Contains(c.says));
  }
}

TEST_CASE("an array is not made for a GPU that is not there") {
  Arguments arguments;
  arguments.device = at::Device(at::kCUDA, static_cast<c10::DeviceIndex>(cuda_devices()));
  CHECK_THROWS_WITH(arguments.make(), Catch::Contains("that LibTorch can use"));
}

TEST_CASE("an array keeps its slots where it refuses another lowering or width") {
  Arguments arguments;
  Array array = arguments.make();
  array.admit(1, trial(arguments.model, 1));
  const StateBytes before = array.extract(1);
  CHECK_THROWS_AS(array.resize(-1), Error);
  CHECK_THROWS_AS(array.lower({.chunk = 0}), Error);
  CHECK(array.width() == 2);
  CHECK(array.extract(1) == before);
  CHECK_NOTHROW(step_all(array, arguments.model.batch));
}

TEST_CASE("a slot is not filled with numbers that the recipe has no place for") {
  struct Case {
    const char* says;
    std::function<void(SlotInit&)> spoil;
  };
  const Case cases[] = {
      {"numbers of the model: found 1", [](SlotInit& init) { init.hyper.graph = {0.5}; }},
      {"numbers of the loss: found 9", [](SlotInit& init) { init.hyper.loss.resize(9); }},
      {"groups of parameters: found 1", [](SlotInit& init) { init.hyper.groups.resize(1); }},
      {"numbers of 1 phases, wanted 0", [](SlotInit& init) { init.hyper.phases.resize(1); }},
      {"found data -1", [](SlotInit& init) { init.data = -1; }},
      {"accumulate 0", [](SlotInit& init) { init.hyper.accumulate = 0; }},
      {"accumulate 2, wanted 1", [](SlotInit& init) { init.hyper.accumulate = 2; }},
  };
  Arguments arguments;
  Array array = arguments.make();
  for (const Case& c : cases) {
    SlotInit init = trial(arguments.model, 0);
    c.spoil(init);
    INFO(c.says);
    CHECK_THROWS_WITH(array.admit(0, init), Catch::Contains(c.says));
    CHECK_FALSE(array.occupied(0));
  }
}

TEST_CASE("samples that are not there are refused by training and evaluation, however slots run") {
  struct Case {
    const char* says;
    std::function<void(Samples&)> spoil;
  };
  const Case cases[] = {
      {"found none for", [](Samples& samples) { samples.inputs.clear(); }},
      {"found none for", [](Samples& samples) { samples.target = {}; }},
      {"wanted equally many", [](Samples& samples) { samples.target = samples.array(1).range(0, 4); }},
      {"wanted equally many", [](Samples& samples) { samples.inputs.front() = samples.array(0).range(0, 4); }},
      {"[0, 99), wanted a range of 6", [](Samples& samples) { samples.end = 99; }},
      {"[7, 6)", [](Samples& samples) { samples.begin = 7; }},
      {"[-1, 6)", [](Samples& samples) { samples.begin = -1; }},
      {"sample 6 of 6", [](Samples& samples) { samples.order = at::arange(1, 7, at::kLong); }},
      {"sample -1 of 6", [](Samples& samples) { samples.order = at::arange(-1, 5, at::kLong); }},
      {"[0, 6), wanted a range of 3",
       [](Samples& samples) { samples.order = at::arange(3, at::kLong), samples.end = 6; }},
      {"order: found Float of 1", [](Samples& samples) { samples.order = at::arange(6, at::kFloat); }},
      {"order: found Long of 2",
       [](Samples& samples) {
         samples.order = at::zeros({6, 1}, at::kLong);
       }},
  };
  for (const int chunk : {kCompiled, 1, 2}) {
    Arguments arguments;
    arguments.lowering = chunked(chunk);
    Array array = arguments.make();
    array.admit(0, trial(arguments.model, 0));
    CHECK_NOTHROW(array.evaluate(0, arguments.model.batch.parts.front()));
    for (const Case& c : cases) {
      INFO(c.says << ", chunk " << chunk);
      Batch batch = arguments.model.batch;
      c.spoil(batch.parts.front());
      CHECK_THROWS_WITH(step_all(array, batch), Catch::Contains(c.says));
      CHECK_THROWS_WITH(array.evaluate(0, batch.parts.front()), Catch::Contains(c.says));
    }
    CHECK(array.progress(0).step == 0);
  }
}

TEST_CASE("a step takes losses of its own form alone, and may have no samples") {
  for (const int chunk : {kCompiled, 1, 2}) {
    CAPTURE(chunk);
    Arguments arguments;
    arguments.lowering = chunked(chunk);
    Array array = arguments.make();
    array.admit(0, trial(arguments.model, 0));
    const auto slots = static_cast<std::int64_t>(array.slots_per_chunk());
    Batch batch = arguments.model.batch;
    for (at::Tensor losses :
         {at::Tensor(), at::zeros({1}, at::kDouble), at::zeros({2, slots + 1}, at::kDouble),
          at::zeros({2, slots}, at::kFloat), at::zeros({4, slots}, at::kDouble).slice(0, 0, 4, 2).t()}) {
      CHECK_THROWS_WITH(array.step(0, batch, {}, losses), Catch::Contains("step: losses: found"));
    }
    batch.parts.front().begin = batch.parts.front().end = 3;
    at::Tensor losses = at::zeros({2, slots}, at::kDouble);
    CHECK_NOTHROW(array.step(0, batch, {}, losses));
    CHECK(losses[1][0].item<double>() == 0);
  }
}

TEST_CASE("an array has no chunks beyond its own, and no slot is paused before its epoch begins") {
  Arguments arguments;
  Array array = arguments.make();
  array.admit(0, trial(arguments.model, 0));
  for (const int chunk : {-1, array.chunks()}) {
    CAPTURE(chunk);
    CHECK_THROWS_WITH(array.first_slot(chunk), Catch::Contains("chunk: found"));
    CHECK_THROWS_WITH(array.fresh_losses(chunk), Catch::Contains("chunk: found"));
  }
  const std::vector<double> sums(2);
  CHECK_THROWS_WITH(array.pause_epoch(0, -5, sums), Catch::Contains("found step -5"));
  CHECK(array.progress(0).epoch_step == 0);
}

TEST_CASE("rows of data that lie outside of their numbers are refused") {
  using Rows = std::vector<std::int64_t>;
  struct Case {
    const char* says;
    std::function<void(Field&)> spoil;
  };
  const Case cases[] = {
      {"found rows from -3 on", [](Field& field) { field.rows.first = -3; }},
      {"-4 apart", [](Field& field) { field.rows.step = -4; }},
      {"the first chosen one -1",
       [](Field& field) {
         field.rows.chosen = std::make_shared<const Rows>(Rows{0, 1, -1, 2, 3, 4});
       }},
      {"found 24 numbers, wanted 6 samples of 4", [](Field& field) { field.rows.first = 1; }},
      {"found 24 numbers, wanted 6 samples of 4",
       [](Field& field) { field.rows.first = std::numeric_limits<std::int64_t>::max(); }},
      {"found 24 numbers, wanted 6 samples of 4",
       [](Field& field) {
         field.rows.chosen = std::make_shared<const Rows>(Rows{0, 1, 6, 2, 3, 4});
       }},
      {"found 24 numbers, wanted 6 samples of 4",
       [](Field& field) { field.rows.chosen = std::make_shared<const Rows>(Rows{}); }},
      {"found samples of shape [-2, -2]",
       [](Field& field) {
         field.shape = {-2, -2};
       }},
      {"wanted what a machine can hold",
       [](Field& field) {
         field.shape = {std::int64_t{1} << 62, 8};
       }},
  };
  const Arguments arguments;
  Dataset data;
  data.size = 6;
  data.inputs = {Field{.name = "x", .shape = {4}, .data = std::vector<float>(24)}};
  data.target = Field{.name = "y", .shape = {}, .data = std::vector<std::int64_t>(6)};
  CHECK_NOTHROW(to_device(data, arguments.model.graph, arguments.model.recipe, at::kCPU));
  Dataset twice = data;  // its samples are rows of fewer numbers
  twice.inputs.front().data = std::vector<float>(8);
  twice.inputs.front().rows.chosen = std::make_shared<const Rows>(Rows{0, 1, 0, 1, 0, 1});
  CHECK_NOTHROW(to_device(twice, arguments.model.graph, arguments.model.recipe, at::kCPU));
  for (const Case& c : cases) {
    Dataset spoilt = data;
    c.spoil(spoilt.inputs.front());
    INFO(c.says);
    CHECK_THROWS_WITH(to_device(spoilt, arguments.model.graph, arguments.model.recipe, at::kCPU),
                      Catch::Contains(c.says));
  }
}

TEST_CASE("an array that memory does not suffice for says so") {
  Arguments arguments;
  arguments.width = 1 << 20;
  arguments.model.graph.weights.front().shape = {std::int64_t{1} << 34};
  arguments.model.graph.values[static_cast<std::size_t>(arguments.model.graph.weights.front().value)].shape = {
      std::int64_t{1} << 34};
  try {
    (void)arguments.make();
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kMemory);
    CHECK_THAT(error.what(), Catch::Contains("cpu: out of memory"));
  }
}

TEST_CASE("epochs refuse data and slots that do not fit") {
  const Arguments arguments;
  const Samples& samples = arguments.model.batch.parts.front();
  const DeviceData data{samples.inputs, samples.target, 6}, fewer{samples.inputs, samples.target, 5};
  Epochs epochs(arguments.model.recipe, {}, data, &data);
  CHECK_THROWS_WITH(epochs.add(fewer, &data), Catch::Contains("found 5 training samples"));
  CHECK_THROWS_WITH(epochs.add(data, nullptr), Catch::Contains("without validation data"));
  const DeviceData none{samples.inputs, samples.target, 0};
  CHECK_THROWS_WITH(Epochs(arguments.model.recipe, {}, none, nullptr),
                    Catch::Contains("found 0 samples for training,"));
  CHECK_THROWS_WITH(epochs.add(data, &none), Catch::Contains("6 samples for training and 0 for validation"));
  Recipe nothing = arguments.model.recipe;
  nothing.batch_size = 0;
  CHECK_THROWS_WITH(Epochs(nothing, {}, data, &data), Catch::Contains("batch_size: found 0"));

  Array array = arguments.make();
  CHECK_THROWS_WITH(epochs.evaluate(array, 1, data, ""), Catch::Contains("slot 1 is empty"));
  SlotInit elsewhere = trial(arguments.model, 0);
  elsewhere.data = 1;
  array.admit(0, elsewhere);
  CHECK_THROWS_WITH(epochs.run(array), Catch::Contains("data: found 1, wanted 0 to 0"));
  CHECK(epochs.add(data, &data) == 1);
  CHECK(epochs.run(array).size() == 1);
}

TEST_CASE("a thread pool that is asked for more from within says so") {
  ThreadPool pool(2, 1);
  CHECK_THROWS_WITH(pool.run(1, [&](int) { pool.run(1, [](int) {}); }), Catch::Contains("while it runs others"));
  int ran = 0;
  pool.run(1, [&](int) { ++ran; });
  CHECK(ran == 1);
}

}  // namespace hfta::fusion::testing
