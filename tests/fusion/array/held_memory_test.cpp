// What arrays hold of memory is what was predicted: bytes are counted where glibc gives them out.
#include <fmt/format.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "catch_after_torch.hpp"
#include "fusion/ways.hpp"
#include "models.hpp"

namespace {

std::atomic<std::int64_t> live = 0, peak = 0;

void* counted(void* place) {
  if (place == nullptr) return nullptr;
  const std::int64_t now = live += static_cast<std::int64_t>(malloc_usable_size(place));
  std::int64_t before = peak;
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
  return place;
}

void forget(void* place) {
  if (place != nullptr) live -= static_cast<std::int64_t>(malloc_usable_size(place));
}

}  // namespace

// glibc's own names for what is interposed here.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t size);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* place, std::size_t size);             // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* place);                                   // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t size) { return counted(__libc_malloc(size)); }
void* calloc(std::size_t count, std::size_t size) { return counted(__libc_calloc(count, size)); }
void* realloc(void* place, std::size_t size) {
  forget(place);
  return counted(__libc_realloc(place, size));
}
void* memalign(std::size_t alignment, std::size_t size) { return counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(std::size_t alignment, std::size_t size) { return counted(__libc_memalign(alignment, size)); }
int posix_memalign(void** place, std::size_t alignment, std::size_t size) {
  *place = counted(__libc_memalign(alignment, size));
  return *place == nullptr ? ENOMEM : 0;
}
void free(void* place) {
  forget(place);
  __libc_free(place);
}
}

namespace hfta::fusion::testing {
namespace {

LayerSpec conv(std::int64_t from, std::int64_t to) {
  return layer("conv2d", {from, to, std::int64_t{3}}, "", {{"padding", std::int64_t{1}}, {"bias", false}});
}

constexpr std::int64_t kChannels = 24, kImages = 32;

void end(std::vector<LayerSpec>& layers) {
  layers.push_back(layer("adaptive_avg_pool2d", {std::int64_t{1}}));
  layers.push_back(layer("flatten"));
  layers.push_back(layer("linear", {kChannels, std::int64_t{10}}));
}

Model of(const std::string& name, const std::vector<LayerSpec>& layers) {
  Model model = classifier(name, layers, {3, 32, 32}, 10, DType::kFloat32, OptimizerKind::kSgd, kImages);
  model.recipe.clips = false;
  return model;
}

/// Convolutions and activations, a pool behind each pair.
Model vgg_like() {
  std::vector<LayerSpec> layers = {conv(3, kChannels), layer("relu")};
  for (int stage = 0; stage < 3; ++stage) {
    for (int k = 0; k < 3; ++k) {
      layers.push_back(conv(kChannels, kChannels));
      layers.push_back(layer("relu"));
    }
    layers.push_back(layer("max_pool2d", {std::int64_t{2}}));
  }
  end(layers);
  return of("VGG-like", layers);
}

/// Blocks of two convolutions with batch norm, each beside what it adds to.
Model resnet_like() {
  const auto norm = layer("batch_norm2d", {kChannels});
  std::vector<LayerSpec> layers = {conv(3, kChannels), norm, layer("relu", {}, "block0")};
  for (int block = 0; block < 5; ++block) {
    for (const LayerSpec& one :
         {conv(kChannels, kChannels), norm, layer("relu"), conv(kChannels, kChannels), norm,
          layer("add", {"block" + std::to_string(block)}), layer("relu", {}, "block" + std::to_string(block + 1))}) {
      layers.push_back(one);
    }
  }
  end(layers);
  return of("ResNet-like", layers);
}

/// Bytes that an array of that width takes at most, beside what was there before, in steps of all its slots.
std::int64_t peak_of(const Model& model, const Lowering& way, int width) {
  const std::int64_t before = live;
  peak = before;
  Array array(model.graph, model.recipe, {.lowering = way, .width = width, .study_seed = 5});
  for (int b = 0; b < width; ++b) array.admit(b, trial(model, b));
  for (int s = 0; s < 2; ++s) static_cast<void>(step_all(array, model.batch));
  return peak - before;
}

constexpr int kWidth = 2;

/// One way to run: bytes of an array of kWidth slots.
struct Held {
  Lowering way;
  std::int64_t predicted = 0, held = 0;
};

std::vector<Held> measured(const Model& model) {
  const MemoryPolicy policy = model.recipe.compression ? MemoryPolicy::kCompress : MemoryPolicy::kAuto;
  const WayQuestion question{model.graph, model.recipe, at::kCPU, kWidth, 2, nullptr, policy};
  std::vector<Lowering> ways = ways_to_run(question);
  std::erase_if(ways, [](const Lowering& way) { return way.executor != "compiled"; });
  const std::vector<WayMemory> needs = memory_of(question, ways);
  const std::int64_t slot =
      Array(model.graph, model.recipe, {.lowering = ways.front(), .width = 1, .study_seed = 5}).bytes_per_slot();
  std::vector<Held> all;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    all.push_back({ways[i], kWidth * slot + slots_at_work(ways[i], kWidth, at::kCPU) * needs[i].at_work,
                   peak_of(model, ways[i], kWidth)});
  }
  return all;
}

Model compressed(Model model) {
  model.name += ", compressed";
  model.recipe.compression = Compression{};
  return model;
}

/// How many times as much the first way takes as the most frugal one of `others` of so many workers.
double gain(const std::vector<Held>& all, const std::vector<Held>& others, int workers) {
  std::int64_t least = all.front().held;
  for (const Held& one : others) least = one.way.workers == workers ? std::min(least, one.held) : least;
  return static_cast<double>(all.front().held) / static_cast<double>(least);
}

}  // namespace

TEST_CASE("an array holds what was predicted within a tenth, whatever the policy") {
  for (const Model& model : {vgg_like(), resnet_like(), compressed(vgg_like()), compressed(resnet_like())}) {
    for (const Held& one : measured(model)) {
      INFO(model.name << ", " << one.way.to_text() << ": " << one.held << " held, " << one.predicted << " predicted");
      CHECK(static_cast<double>(one.held) > 0.9 * static_cast<double>(one.predicted));
      CHECK(static_cast<double>(one.held) < 1.1 * static_cast<double>(one.predicted));
    }
  }
}

TEST_CASE("an array of equal width takes less where values are computed again or compressed, and by teams") {
  const std::vector<Held> vgg = measured(vgg_like()), resnet = measured(resnet_like());
  CHECK(gain(vgg, vgg, 2) > 1.1);
  CHECK(gain(vgg, vgg, 1) > 2);
  CHECK(gain(resnet, resnet, 2) > 2);
  CHECK(gain(resnet, resnet, 1) > 4);
  const std::vector<Held> vgg_compressed = measured(compressed(vgg_like()));
  CHECK(gain(vgg, vgg_compressed, 2) > 2.5);
  CHECK(gain(vgg, vgg_compressed, 1) > 4.5);
  CHECK(gain(resnet, measured(compressed(resnet_like())), 2) > 2.9);
}

TEST_CASE("print what arrays hold, for docs/memory.md", "[.print]") {
  for (const Model& model : {vgg_like(), resnet_like()}) {
    std::vector<Held> all = measured(model);
    for (Held& one : measured(compressed(model))) all.push_back(std::move(one));
    for (const Held& one : all) {
      const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
      std::cout << fmt::format("{}, {}: {:.1f} MiB held, {:.1f} predicted; {:.2f} times less than keep\n", model.name,
                               one.way.to_text(), mebibytes(one.held), mebibytes(one.predicted),
                               mebibytes(all.front().held) / mebibytes(one.held));
    }
  }
}

}  // namespace hfta::fusion::testing
