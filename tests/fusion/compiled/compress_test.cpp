// Arrays whose values lie encoded between forward and backward: what stays the same to the bit, how far gradients are
// off, and what goes wrong without the rule.
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "fusion/cpu/encode.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/dataset.hpp"
#include "fusion/runnable.hpp"
#include "fusion/ways.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"

namespace hfta::fusion::testing {
namespace {

LayerArg whole(std::int64_t n) { return LayerArg(n); }

LayerSpec conv(std::int64_t from, std::int64_t to, std::int64_t kernel = 3, std::int64_t groups = 1) {
  return layer("conv2d", {whole(from), whole(to), whole(kernel)}, "",
               {{"padding", whole(kernel / 2)}, {"groups", whole(groups)}, {"bias", false}});
}

LayerSpec norm(std::int64_t channels) { return layer("batch_norm2d", {whole(channels)}); }

Model of(const std::string& name, std::vector<LayerSpec> layers, std::int64_t channels,
         OptimizerKind optimizer = OptimizerKind::kSgd) {
  layers.push_back(layer("adaptive_avg_pool2d", {whole(2)}));
  layers.push_back(layer("flatten"));
  layers.push_back(layer("linear", {whole(4 * channels), whole(48)}));
  layers.push_back(layer("relu"));
  layers.push_back(layer("linear", {whole(48), whole(5)}));
  Model model = classifier(name, layers, {2, 12, 12}, 5, DType::kFloat32, optimizer, 24);
  model.recipe.compression = Compression{};
  return model;
}

Model plain(OptimizerKind optimizer = OptimizerKind::kSgd) {
  return of("plain",
            {conv(2, 16), layer("relu"), conv(16, 16), layer("relu"), layer("max_pool2d", {whole(2)}), conv(16, 16),
             layer("relu")},
            16, optimizer);
}

Model normed(OptimizerKind optimizer = OptimizerKind::kAdam) {
  return of("batch norm and a residual",
            {conv(2, 16), norm(16), layer("relu", {}, "block"), conv(16, 16), norm(16), layer("relu"), conv(16, 16),
             norm(16), layer("add", {"block"}), layer("relu")},
            16, optimizer);
}

// Gradients are handed on in one place from convolution to convolution, but for the one that two values have.
Model deep() {
  return of("a chain and a residual",
            {conv(2, 16), layer("relu", {}, "block"), conv(16, 16), layer("relu"), conv(16, 16), layer("relu"),
             conv(16, 16), layer("add", {"block"}), conv(16, 16), layer("relu"), conv(16, 16)},
            16);
}

Model separable() {
  return of("separable",
            {conv(2, 32), layer("relu"), conv(32, 32, 3, 32), layer("relu"), conv(32, 24, 1), layer("relu"),
             conv(24, 24, 3, 4), layer("relu")},
            24);
}

Model dropping() {
  return of("dropout", {conv(2, 16), layer("relu"), layer("dropout", {0.3}), conv(16, 16), layer("tanh"), conv(16, 16)},
            16, OptimizerKind::kRmsprop);
}

// Convolutions by tiles (Winograd).
Model tiled() {
  return of("tiles",
            {conv(2, 32), norm(32), layer("relu", {}, "block"), conv(32, 33), layer("relu"), conv(33, 32), norm(32),
             layer("add", {"block"}), layer("relu")},
            32);
}

// Depthwise convolutions, of which no two channels read the same, and pointwise ones between them, all with norms.
Model separable_normed() {
  return of(
      "separable with norms",
      {conv(2, 16), norm(16), layer("relu"), conv(16, 16, 3, 16), norm(16), layer("relu"), conv(16, 32, 1), norm(32),
       layer("relu"), conv(32, 32, 3, 32), norm(32), layer("relu"), conv(32, 24, 1), norm(24), layer("relu")},
      24);
}

// Many norms, each of which passes its noise on to all layers below.
Model deep_normed() {
  std::vector<LayerSpec> layers = {conv(2, 16), norm(16), layer("relu", {}, "block0")};
  for (int block = 0; block < 6; ++block) {
    for (const LayerSpec& one :
         {conv(16, 16), norm(16), layer("relu"), conv(16, 16), norm(16),
          layer("add", {"block" + std::to_string(block)}), layer("relu", {}, "block" + std::to_string(block + 1))}) {
      layers.push_back(one);
    }
  }
  return of("many norms", layers, 16);
}

// Images whose pixels are much like their neighbours, as those of cameras are.
Model smooth(Model model) {
  model.name += ", smooth images";
  Samples& samples = model.batch.parts.front();
  const at::Tensor x = samples.of(samples.inputs.front()), coarse = at::avg_pool2d(x, {6, 6}, {6, 6});
  samples.inputs.front() = at::upsample_bilinear2d(coarse, {x.size(2), x.size(3)}, false) * 5 + 0.2 * x;
  return model;
}

std::vector<Model> models() {
  return {plain(), normed(), deep(), separable(), dropping(), tiled(), separable_normed()};
}

Model with(Model model, std::optional<Compression> compression) {
  model.recipe.compression = compression;
  return model;
}

constexpr const char* kBounds = "optimizer.bounds";

// Every tensor of a state but the bounds.
std::map<std::string, std::vector<std::byte>> tensors_of(const StateBytes& state) {
  std::map<std::string, std::vector<std::byte>> all;
  for (const TensorView& one : parse_safetensors(state).tensors) {
    if (one.name != kBounds) all[one.name] = {one.bytes.begin(), one.bytes.end()};
  }
  return all;
}

std::span<double> bounds_in(StateBytes& state) {
  for (const TensorView& one : parse_safetensors(state).tensors) {
    if (one.name != kBounds) continue;
    auto* const first = const_cast<std::byte*>(one.bytes.data());
    return {reinterpret_cast<double*>(first), one.bytes.size() / sizeof(double)};
  }
  return {};
}

struct Trained {
  std::vector<std::vector<double>> losses;
  std::vector<StateBytes> states;

  bool operator==(const Trained&) const = default;
};

Trained trained(const Model& model, int width, int threads, int steps) {
  Array array(model.graph, model.recipe,
              {.lowering = chunked(kCompiled, {}, threads), .width = width, .study_seed = 5});
  for (int b = 0; b < width; ++b) array.admit(b, trial(model, b));
  Trained result;
  for (int s = 0; s < steps; ++s) result.losses.push_back(step_all(array, model.batch));
  for (int b = 0; b < width; ++b) result.states.push_back(array.extract(b));
  return result;
}

}  // namespace

TEST_CASE("with a sigma of 0 values come back as they were: bits are those of keep", "[numeric]") {
  for (const Model& model : models()) {
    INFO(model.name);
    const Trained keep = trained(with(model, std::nullopt), 2, 1, 4),
                  zero = trained(with(model, Compression{.sigma = 0}), 2, 1, 4),
                  some = trained(with(model, Compression{.sigma = 0.01}), 2, 1, 4);
    CHECK(zero.losses == keep.losses);
    for (std::size_t b = 0; b < 2; ++b) {
      const auto wanted = tensors_of(keep.states[b]);
      CHECK((tensors_of(zero.states[b]) == wanted));
      CHECK_FALSE((tensors_of(some.states[b]) == wanted));
    }
  }
}

TEST_CASE("compressed slots train to the same bits alone and beside others, on any number of threads", "[numeric]") {
  for (const Model& base : models()) {
    INFO(base.name);
    const Model model = with(base, Compression{.sigma = 0.01, .interval = 3});
    const Trained together = trained(model, 4, 1, 9);
    for (const int threads : {2, 3, 8}) CHECK((trained(model, 4, threads, 9) == together));
    Array alone(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5});
    alone.admit(0, trial(model, 2));
    for (int s = 0; s < 9; ++s) static_cast<void>(step_all(alone, model.batch));
    CHECK((alone.extract(0) == together.states[2]));
  }
}

TEST_CASE("a compressed slot that is saved between two refreshes goes on to the same bits, in any slot of any array",
          "[numeric]") {
  for (const Model& base : models()) {
    INFO(base.name);
    const Model model = with(base, Compression{.sigma = 0.01, .interval = 4});
    constexpr int kSteps = 14;
    const StateBytes whole_run = trained(model, 3, 1, kSteps).states[1];
    for (int pause = 0; pause < kSteps; ++pause) {
      INFO("saved before step " << pause);
      Array first(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 3, .study_seed = 5});
      for (int b = 0; b < 3; ++b) first.admit(b, trial(model, b));
      for (int s = 0; s < pause; ++s) static_cast<void>(step_all(first, model.batch));
      Array second(model.graph, model.recipe, {.lowering = chunked(kCompiled, {}, 2), .width = 2, .study_seed = 5});
      second.admit(1, trial(model, 7));
      static_cast<void>(step_all(second, model.batch));
      second.insert(0, trial(model, 1), first.extract(1));
      for (int s = pause; s < kSteps; ++s) {
        static_cast<void>(step_all(second, model.batch));
        if (s == pause) second.clear(1);  // pruned in the midst of an interval
        if (s == pause + 1) second.resize(1);
      }
      CHECK((second.extract(0) == whole_run));
    }
  }
}

TEST_CASE("a trial in a slot that another one has had begins without that one's bounds", "[numeric]") {
  const Model model = with(plain(), Compression{.sigma = 0.01, .interval = 1000});
  const auto state_after = [&](bool second) {
    Array array(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5});
    const auto train = [&](int b) {
      array.admit(0, trial(model, b));
      for (int s = 0; s < 6; ++s) static_cast<void>(step_all(array, model.batch));
    };
    if (second) {
      train(0);
      array.clear(0);
    }
    train(2);
    return array.extract(0);
  };
  CHECK((state_after(true) == state_after(false)));
}

namespace {

// Positions among a layer's numbers: fusion/codec/slot_bounds.cpp.
constexpr std::size_t kBound = 0, kWanted = 2;

// By the trained weight: how far its gradient was allowed to be off, and was, the root mean square over steps.
struct Off {
  double wanted = 0, measured = 0;
  bool norm = false;
};

// Sets a state's bounds of norms to `times` what they are, and all bounds for good.
void widen_norms(const BoundLayout& layout, StateBytes& state, double times) {
  const std::span<double> numbers = bounds_in(state);
  numbers[0] = numbers[1] = 1000;  // the next refresh is far away
  numbers[2] = 0;                  // and the step before has not measured
  for (std::size_t w = 0; w < layout.weights(); ++w) {
    if (layout.is_norm(w)) numbers[layout.offset(w) + kBound] *= times;
  }
}

// `times`: what bounds of norms are multiplied by once they are known.
std::map<std::string, Off> errors_of(const Model& model, double times = 1) {
  constexpr int kFirst = 4;
  const int last = times == 1 ? 16 : kFirst + 2;  // set for good, bounds are soon those of another net
  const Model exact = with(model, Compression{.sigma = 0});
  const BoundLayout layout = cpu::bounded_layers(model.graph);
  Array array(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5}),
      reference(exact.graph, exact.recipe, {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5});
  for (Array* one : {&array, &reference}) one->keep_gradients();
  array.admit(0, trial(model, 2));
  std::map<std::string, Off> all;
  for (int s = 0; s < last; ++s) {
    if (s == kFirst && times != 1) {
      StateBytes state = array.extract(0);
      widen_norms(layout, state, times);
      array.clear(0);
      array.insert(0, trial(model, 2), state);
    }
    const StateBytes before = array.extract(0);
    StateBytes same = before;
    for (double& number : bounds_in(same)) number = 0;
    reference.clear(0);
    reference.insert(0, trial(model, 2), same);
    static_cast<void>(step_all(reference, model.batch));
    static_cast<void>(step_all(array, model.batch));
    if (s < kFirst) continue;
    StateBytes after = array.extract(0), earlier = before;
    const auto found = array.gradients(0), wanted = reference.gradients(0);
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (std::size_t w = 0; w < model.graph.weights.size(); ++w) {
        if (model.graph.weights[w].name != found[i].first || !layout.has(w)) continue;
        // Its input may be no value that is encoded.
        if (bounds_in(after)[layout.offset(w) + kBound] == 0 && layout.norms_above(w) == 0) continue;
        Off& off = all[found[i].first];
        off.norm = layout.is_norm(w);
        const at::Tensor error = found[i].second.to(at::kDouble) - wanted[i].second.to(at::kDouble);
        off.measured += error.square().mean().item<double>() / (last - kFirst);
        off.wanted += std::pow(bounds_in(earlier)[layout.offset(w) + kWanted], 2) / (last - kFirst);
      }
    }
  }
  for (auto& [name, off] : all) off = {std::sqrt(off.wanted), std::sqrt(off.measured), off.norm};
  return all;
}

}  // namespace

TEST_CASE("gradients of compressed slots are off by what the rule says", "[numeric]") {
  std::vector<Model> all_models = models();
  for (const Model& one : {plain(), normed(), tiled(), deep_normed()}) all_models.push_back(smooth(one));
  for (const Model& base : all_models) {
    const Model model = with(base, Compression{.sigma = 0.01, .interval = 1});
    const std::map<std::string, Off> all = errors_of(model);
    CHECK(all.size() >= 2);
    const bool drops = base.name == "dropout";  // where the step before had another mask, and so another L
    for (const auto& [name, off] : all) {
      INFO(model.name << ", " << name << ": " << off.measured << " measured, " << off.wanted << " wanted");
      CHECK(off.wanted / off.measured > 0.8);
      // A norm's bound is what the layers below it can take. Its own gradient could be further off.
      if (!off.norm) CHECK(off.wanted / off.measured < (drops ? 2 : 1.25));
    }
  }
}

TEST_CASE("noise of batch norms goes down the net as the rule says", "[numeric]") {
  // With bounds of norms that are so many times what they should be, their noise is most of what gradients are off.
  constexpr double kTimes = 16;
  for (const Model& base :
       {normed(), tiled(), separable_normed(), deep_normed(), smooth(normed()), smooth(deep_normed())}) {
    const Model model = with(base, Compression{.sigma = 0.01, .interval = 1000});
    const Off first = errors_of(model, kTimes).begin()->second;  // of the first convolution, which all norms are above
    const double own = std::hypot(1, kTimes * kPassedOn), measured = first.measured / first.wanted;
    INFO(model.name << ": " << measured << " measured, at most " << own << " wanted");
    CHECK(measured < 1.25 * own);
    CHECK(measured > own / 5);
  }
}

namespace {

SlotInit quick_trial(const Model& model, int b) {
  SlotInit init = trial(model, b);
  init.hyper.optimizer.lr = 0.1;
  init.hyper.optimizer.momentum = 0.5;
  init.hyper.optimizer.weight_decay = 0;
  return init;
}

// The mean loss over the last steps of some trials; behind a few steps the bounds are set to `times` what they are, for
// good, if that is not 0.
double loss_after(const Model& model, double times) {
  constexpr int kBefore = 8, kSteps = 400, kLast = 30, kTrials = 4;
  Array array(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = kTrials, .study_seed = 5});
  for (int b = 0; b < kTrials; ++b) array.admit(b, quick_trial(model, b));
  for (int s = 0; s < kBefore; ++s) static_cast<void>(step_all(array, model.batch));
  for (int b = 0; times > 0 && b < kTrials; ++b) {
    StateBytes state = array.extract(b);
    const std::span<double> numbers = bounds_in(state);
    numbers[0] = numbers[1] = 1000;  // the next refresh is far away
    const BoundLayout layout = cpu::bounded_layers(model.graph);
    for (std::size_t w = 0; w < layout.weights(); ++w) {
      if (layout.has(w)) numbers[layout.offset(w) + kBound] *= times;
    }
    array.clear(b);
    array.insert(b, quick_trial(model, b), state);
  }
  double loss = 0;
  for (int s = 0; s < kSteps; ++s) {
    for (const double one : step_all(array, model.batch)) loss += s >= kSteps - kLast ? one / (kLast * kTrials) : 0;
  }
  return loss;
}

}  // namespace

TEST_CASE("bounds that are set once, too large, ruin a training that the rule does not", "[numeric]") {
  const Model ruled_model = with(plain(), Compression{.sigma = 0.01, .interval = 1000});
  const double keep = loss_after(with(plain(), std::nullopt), 0), ruled = loss_after(ruled_model, 0),
               fixed = loss_after(ruled_model, 300);
  CAPTURE(keep, ruled, fixed);
  CHECK(keep < 1);
  CHECK(ruled < 1.3 * keep);
  CHECK(!(fixed < 2 * keep));
}

TEST_CASE("numbers of bounds that no step wrote do no harm") {
  const Model model = plain();
  const StateBytes sound = trained(model, 1, 1, 3).states[0];
  for (const double odd : {-1.0, 1e300, std::nan(""), 1.0, 0.5}) {
    StateBytes state = sound;
    for (double& number : bounds_in(state)) number = odd;
    Array array(model.graph, model.recipe, {.lowering = chunked(kCompiled), .width = 1, .study_seed = 5});
    array.insert(0, trial(model, 0), state);
    for (int s = 0; s < 3; ++s) CHECK_NOTHROW(step_all(array, model.batch));
  }
}

TEST_CASE("a model's first try does not compress, whatever executor it runs by") {
  const Model model = plain();
  Dataset few;
  few.size = 4;
  few.inputs.push_back({"x", {2, 12, 12}, std::vector<float>(4 * 2 * 12 * 12, 0.5F)});
  few.target = {"y", {}, std::vector<std::int64_t>{0, 1, 2, 3}};
  CHECK_NOTHROW(check_runnable(model.graph, model.recipe, trial(model, 0).hyper, few, at::kCPU));
}

TEST_CASE("compressed slots run compiled alone, and a plan says what of them lies encoded") {
  const auto note_of = [](const Model& model) {
    const WayQuestion question{model.graph, model.recipe, at::kCPU, 2, 2, nullptr, MemoryPolicy::kCompress};
    const std::vector<Lowering> ways = ways_to_run(question);
    REQUIRE_FALSE(ways.empty());
    for (const Lowering& way : ways) CHECK(way.executor == "compiled");
    return way_note(question, ways.front());
  };
  CHECK(note_of(plain()) == "5 of a batch's values, 307.5 KiB, lie encoded between forward and backward");
  CHECK(note_of(normed()) == "8 of a batch's values, 1.1 MiB, lie encoded between forward and backward");
  Model linear = classifier("linear", {layer("flatten"), layer("linear", {whole(288), whole(5)})}, {2, 12, 12}, 5,
                            DType::kFloat32, OptimizerKind::kSgd, 24);
  linear.recipe.compression = Compression{};
  CHECK(note_of(linear) == "no value can lie encoded: values are kept, or computed again");
}

TEST_CASE("what cannot be compressed is refused, with words") {
  const auto refusal = [](const Model& model, const Lowering& lowering) {
    try {
      const Array array(model.graph, model.recipe, {.lowering = lowering, .width = 2, .study_seed = 5});
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      return std::string(error.what());
    }
    return std::string();
  };
  const Model model = plain();
  CHECK(refusal(model, chunked(kCompiled)).empty());
  CHECK(refusal(model, chunked(1)) == "lowering: found eager with compressed values, wanted compiled");
  Model wide = model;
  wide.recipe.dtype = DType::kFloat64;
  CHECK(refusal(wide, chunked(kCompiled)) ==
        "array: found float64, with which values are not compressed, wanted one process on a CPU, one phase and "
        "float32");
}

}  // namespace hfta::fusion::testing
