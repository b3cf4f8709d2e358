// A steady step of a compiled model takes no memory: allocations are counted where glibc gives them out.
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "catch_after_torch.hpp"
#include "fusion/epochs.hpp"
#include "models.hpp"

namespace {
std::atomic<long> allocations = 0;
}  // namespace

// glibc's own names for what is interposed here.
extern "C" {
void* __libc_malloc(std::size_t size);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t size);  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t size) {
  ++allocations;
  return __libc_malloc(size);
}
int posix_memalign(void** place, std::size_t alignment, std::size_t size) {
  ++allocations;
  *place = __libc_memalign(alignment, size);
  return *place == nullptr ? ENOMEM : 0;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++allocations;
  return __libc_memalign(alignment, size);
}
}

namespace hfta::fusion::testing {
namespace {

// A model whose kernels a team shares.
Model wide_mlp() {
  const auto linear = [](std::int64_t in, std::int64_t out) { return layer("linear", {in, out}); };
  return classifier("wide mlp",
                    {layer("flatten"), linear(12, 400), layer("relu"), linear(400, 400), layer("relu"), linear(400, 4)},
                    {3, 4}, 4, DType::kFloat32, OptimizerKind::kAdam, 100);
}

// Convolutions by taps and by tiles (Winograd).
Model conv_layers() {
  const auto conv = [](std::int64_t in, std::int64_t out) {
    return layer("conv2d", {in, out, std::int64_t{3}}, "", {{"padding", std::int64_t{1}}});
  };
  return classifier(
      "convolutions",
      {layer("unflatten", {std::int64_t{1}, Shape{1, 3}}), conv(1, 32), layer("relu"), conv(32, 32), layer("relu"),
       conv(32, 4), layer("flatten"), layer("linear", {std::int64_t{48}, std::int64_t{4}})},
      {3, 4}, 4, DType::kFloat32, OptimizerKind::kAdam, 100);
}

// Allocations of the third epoch of that many steps.
long allocations_of_epoch(Model model, int width, int threads, std::int64_t steps) {
  model.recipe.clips = false;
  const std::int64_t n = steps * model.recipe.batch_size;
  const DeviceData data{{counted_normal({n, 3, 4}, DType::kFloat32, 31)}, counted_labels(n, 4, 32), n};
  Array array(model.graph, model.recipe,
              {.lowering = chunked(kCompiled, {}, threads), .width = width, .study_seed = 5});
  for (int b = 0; b < width; ++b) array.admit(b, trial(model, b));
  const Epochs epochs(model.recipe, {}, data, nullptr);
  for (int e = 0; e < 2; ++e) static_cast<void>(epochs.run(array));
  const long before = allocations;
  static_cast<void>(epochs.run(array));
  return allocations - before;
}

}  // namespace

TEST_CASE("memory is counted") {
  const long before = allocations;
  const at::Tensor made = at::empty({16});
  CHECK(allocations > before);
}

TEST_CASE("a longer epoch takes no more memory from the system than a short one") {
  // One thread: a second one would make its workspace whenever it first gets hold of a slot.
  const Model model = in_groups(mlp(DType::kFloat32, OptimizerKind::kAdam));
  CHECK(allocations_of_epoch(model, 3, 1, 200) == allocations_of_epoch(model, 3, 1, 10));
}

TEST_CASE("nor does one of a slot that a team trains") {
  CHECK(allocations_of_epoch(wide_mlp(), 1, 3, 60) == allocations_of_epoch(wide_mlp(), 1, 3, 10));
}

TEST_CASE("nor does one of convolutions") {
  CHECK(allocations_of_epoch(conv_layers(), 1, 3, 60) == allocations_of_epoch(conv_layers(), 1, 3, 10));
}

}  // namespace hfta::fusion::testing
