// The CUDA kernels, run on the CPU by fake/cuda_runtime.h, against the CPU's own loops.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cuda_runtime.h"
#include "fusion/cuda/attention_kernels.hpp"
#include "fusion/cuda/batch_norm_kernels.hpp"
#include "fusion/cuda/bias_kernels.hpp"
#include "fusion/cuda/codec_kernels.hpp"
#include "fusion/cuda/columns_kernels.hpp"
#include "fusion/cuda/embedding_kernels.hpp"
#include "fusion/cuda/loss_kernels.hpp"
#include "fusion/cuda/norm_kernels.hpp"
#include "fusion/cuda/slot_kernels.hpp"
#include "fusion/optimizers/slot_step.hpp"
#include "fusion/random/draws.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr int kSlots = 3, kGroups = 3;

template <typename T>
struct Parameters {
  std::vector<std::size_t> sizes;
  std::vector<std::vector<T>> weight, gradient, states[kMostStates];

  explicit Parameters(std::vector<std::size_t> n) : sizes(std::move(n)) {
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      for (auto* tensors : {&weight, &gradient, &states[0], &states[1], &states[2]}) {
        std::vector<T>& values = tensors->emplace_back(sizes[k] * kSlots);
        fill_normal(values.data(), values.size(), 7, static_cast<std::uint32_t>(k), tensors == &weight ? 1 : 2);
      }
      for (auto& tensors : states) {  // sums of squares are among them
        for (T& value : tensors.back()) value = std::abs(value);
      }
    }
  }
  [[nodiscard]] std::vector<SlotRows<T>> rows() {
    std::vector<SlotRows<T>> all;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      all.push_back({weight[k].data(),
                     gradient[k].data(),
                     {states[0][k].data(), states[1][k].data(), states[2][k].data()},
                     sizes[k]});
    }
    return all;
  }
  [[nodiscard]] std::vector<SlotRow<T>> rows_of(std::size_t slot) {
    std::vector<SlotRow<T>> all;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::size_t at = slot * sizes[k];
      all.push_back({weight[k].data() + at,
                     gradient[k].data() + at,
                     {states[0][k].data() + at, states[1][k].data() + at, states[2][k].data() + at},
                     sizes[k],
                     groups()[k]});
    }
    return all;
  }
  [[nodiscard]] std::vector<unsigned short> groups() const {
    std::vector<unsigned short> all;
    for (std::size_t k = 0; k < sizes.size(); ++k) all.push_back(static_cast<unsigned short>((k + 1) % kGroups));
    return all;
  }
};

// A slot's numbers, by group.
std::vector<SlotStep> steps_of(int b) {
  std::vector<SlotStep> all(kGroups);
  for (int g = 0; g < kGroups; ++g) {
    SlotStep& s = all[static_cast<std::size_t>(g)];
    s.updates = b != 1;
    s.hyper.lr = 0.01 * (b + 1) * (g + 1);
    s.hyper.weight_decay = 0.1 * b + 0.05 * g;
    s.hyper.momentum = b == 2 && g != 1 ? 0.9 : 0;
    s.hyper.centered = b == 2;
    s.hyper.nesterov = b == 2 && g == 2;
    s.step = 1 + b;
    if (b == 2) s.clip_norm = 0.5;
  }
  return all;
}

template <typename T>
bool same(const std::vector<std::vector<T>>& a, const std::vector<std::vector<T>>& b, double within) {
  const auto close = [&](T x, T y) {
    return x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= within * std::max(std::abs(x), T{1});
  };
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (!std::equal(a[k].begin(), a[k].end(), b[k].begin(), close)) return false;
  }
  return true;
}

// One step of every slot by the kernels, with those factors on gradients.
template <typename T>
void step_by(OptimizerKind kind, const SlotParameters<T>& all, const double* factors) {
  std::vector<unsigned char> updates;
  for (int b = 0; b < kSlots; ++b) updates.push_back(steps_of(b).front().updates ? 1 : 0);
  with_rule(kind, [&](auto rule) {
    std::vector<typename decltype(rule)::template Numbers<T>> numbers;
    for (int b = 0; b < kSlots; ++b) {
      for (const SlotStep& s : steps_of(b)) numbers.push_back(numbers_of<decltype(rule), T>(s));
    }
    step(kind, all, {numbers.data(), updates.data(), factors, kGroups}, nullptr);
  });
}

// The same with clipping; memory that nobody may rely on begins as NaN.
template <typename T>
void step_by_kernels(OptimizerKind kind, Parameters<T>& parameters) {
  std::vector<double> clip_norms;
  for (int b = 0; b < kSlots; ++b) clip_norms.push_back(steps_of(b).front().clip_norm.value_or(-1));
  const std::vector<SlotRows<T>> rows = parameters.rows();
  const std::vector<unsigned short> groups = parameters.groups();
  const SlotParameters<T> all{rows.data(), groups.data(), static_cast<int>(rows.size()), kSlots};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> factors(kSlots, nan);
  std::vector<double> workspace(
      clip_workspace(parameters.sizes.data(), static_cast<int>(parameters.sizes.size()), kSlots), nan);
  clip_factors(all, clip_norms.data(), workspace.data(), factors.data(), nullptr);
  step_by(kind, all, factors.data());
}

template <typename T>
void check_step(OptimizerKind kind, const std::vector<std::size_t>& sizes, bool poisoned) {
  Parameters<T> found(sizes), expected(sizes);
  for (Parameters<T>* p : {&found, &expected}) {
    if (poisoned && sizes.back() > 0) p->gradient.back().front() = std::numeric_limits<T>::quiet_NaN();  // slot 0
  }
  step_by_kernels<T>(kind, found);
  for (int b = 0; b < kSlots; ++b) {
    const std::vector<SlotRow<T>> rows = expected.rows_of(static_cast<std::size_t>(b));
    const std::vector<SlotStep> numbers = steps_of(b);
    if (numbers.front().updates) step_slot(kind, std::span<const SlotRow<T>>(rows), numbers);
  }
  // A clipped slot's norm is summed in another order.
  const double within = sizeof(T) == sizeof(float) ? 1e-6 : 1e-14;
  CHECK(same(found.weight, expected.weight, within));
  for (std::size_t s = 0; s < kMostStates; ++s) CHECK(same(found.states[s], expected.states[s], within));
}

template <typename T>
std::vector<T> poison(std::size_t n) {
  return std::vector<T>(n, std::numeric_limits<T>::quiet_NaN());
}

// Those that go down columns of rows, of two parts.
template <typename T>
void run_columns() {
  std::vector<T> x(129), y(129), statistics(2), workspace(4);
  const BatchNormRows<T> in{x.data(), 129, 1, 1, 129, 1, nullptr, nullptr, false};
  const BatchNormStatistics<T> by{statistics.data(), statistics.data() + 1};
  batch_norm_statistics(in, 1e-5, by, {nullptr, nullptr, 0}, workspace.data(), nullptr);
  batch_norm(in, by, y.data(), nullptr);
  batch_norm_backward(in, by, true, x.data(), {y.data(), nullptr, nullptr}, workspace.data(), nullptr);
  const BiasShape shape{1, 129, 1};
  add_bias(shape, statistics.data(), false, y.data(), nullptr);
  add_bias_backward(shape, x.data(), nullptr, nullptr, statistics.data(), workspace.data(), nullptr);
  const NormRows<T> rows{x.data(), nullptr, nullptr, 1, 129, 1, 1e-5};
  std::vector<T> means(129), rstds(129);
  layer_norm_backward(rows, x.data(), means.data(), rstds.data(), {y.data(), statistics.data(), nullptr},
                      workspace.data(), nullptr);
}

// Those of convolutions, of one pixel.
template <typename T>
void run_convolutions() {
  T x = 1, column = 0;
  const ColumnShape shape{1, 1, 1, 1, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, false};
  columns(shape, {&x, 1, 1, 1, 1, 1}, &column, nullptr);
  images(shape, &column, {&x, 1, 1, 1, 1, 1}, nullptr);
}

// Narrow rows and wide ones.
template <typename T>
void run_attention() {
  for (const unsigned features : {1U, 17U}) {
    std::vector<T> row(features), out(features), sums(2);
    const AttentionRows<const T> in{row.data(), 0, 0, 0, 0};
    const AttentionRows<T> to{out.data(), 0, 0, 0, 0};
    const AttentionShape shape{1, 1, 1, 1, 1, features, features, 1, false};
    attention(shape, {in, in, in}, to, sums.data(), nullptr);
    attention_backward(shape, {in, in, in}, {in, in, sums.data()}, {to, to, to}, sums.data() + 1, nullptr);
  }
}

// Every function that launches kernels for T.
template <typename T>
void run_all() {
  for (const OptimizerInfo& optimizer : optimizers()) {
    Parameters<T> parameters({5});
    step_by_kernels<T>(optimizer.kind, parameters);
  }
  const std::vector<SlotRandom> random(kSlots);
  const Draw draw{random.data(), kSlots, 5, 1};
  std::vector<T> out(5 * kSlots);
  dropout_masks(out.data(), draw, {nullptr, 0.5}, nullptr);
  uniforms(out.data(), draw, nullptr);
  normals(out.data(), draw, nullptr);
  const std::int64_t target = 1;
  const Logits<T> logits{out.data(), &target, 1, -100, 1, 1, 3, nullptr, 0};
  std::vector<T> sums(6);
  cross_entropy(logits, sums.data(), sums.data() + 1, sums.data() + 2, nullptr);
  cross_entropy_backward(logits, sums.data() + 1, {sums.data(), nullptr}, sums.data() + 3, nullptr);
  std::vector<T> many(5000, T{1});
  std::vector<double> parts(loss_means_workspace(many.size(), 1));
  loss_means(CountedLosses<T>{many.data(), many.data(), 1, many.size()}, sums.data(), sums.data() + 1, parts.data(),
             nullptr);
  add_losses(StepLosses<T>{sums.data(), nullptr, 0, 1, 1}, parts.data(), nullptr);
  const NormRows<T> rows{out.data(), nullptr, nullptr, 1, 1, 3, 1e-5};
  layer_norm(rows, sums.data(), sums.data() + 3, sums.data() + 4, nullptr);
  const Lookup lookup{&target, 0, -1, 1, 1, 2, 3};
  embedding(lookup, out.data(), sums.data(), nullptr);
  embedding_backward(lookup, sums.data(), out.data(), nullptr);
  run_columns<T>();
  run_convolutions<T>();
  run_attention<T>();
}

void run_rows() {
  const std::int64_t begin = 0;
  alignas(16) std::array<unsigned char, 32> bytes{};
  for (const std::size_t width : {16, 4, 1})
    batch_rows(bytes.data(), 1, bytes.data() + 16, width, nullptr, &begin, nullptr);
  store(bytes.data(), &begin, sizeof(begin), nullptr);
}

void run_codec() {
  float x = 1;
  const float bound = 0.1F;
  std::vector<std::uint32_t> bytes(40);
  std::vector<std::uint64_t> workspace(codec_workspace(1, 1));
  auto* const out = reinterpret_cast<unsigned char*>(bytes.data());
  std::uint64_t size = 0;
  encode_slots({&x, 1, 1}, &bound, {out, 160}, &size, workspace.data(), nullptr);
  decode_slots({out, 160}, {&x, 1, 1}, workspace.data(), nullptr);
}

}  // namespace

TEST_CASE("optimizer kernels step as the CPU's loops") {
  const auto sizes = GENERATE(std::vector<std::size_t>{5}, std::vector<std::size_t>{0, 1, 2048, 2049},
                              std::vector<std::size_t>{5000, 0, 3}, std::vector<std::size_t>(193, 7));
  const OptimizerKind kind = GENERATE(from_range(optimizers())).kind;
  const bool poisoned = GENERATE(false, true);
  INFO(name_of(kind) << ", " << sizes.size() << " parameters" << (poisoned ? ", one NaN" : ""));
  check_step<float>(kind, sizes, poisoned);
  check_step<double>(kind, sizes, poisoned);
}

TEST_CASE("where nobody clips, optimizer kernels take gradients as they are") {
  Parameters<float> found({5000, 3}), wanted({5000, 3});
  const std::vector<double> ones(kSlots, 1);
  for (Parameters<float>* parameters : {&found, &wanted}) {
    const std::vector<SlotRows<float>> rows = parameters->rows();
    const std::vector<unsigned short> groups = parameters->groups();
    step_by<float>(OptimizerKind::kAdam, {rows.data(), groups.data(), 2, kSlots},
                   parameters == &found ? nullptr : ones.data());
  }
  CHECK(found.weight == wanted.weight);
  CHECK(found.weight != Parameters<float>({5000, 3}).weight);
}

TEMPLATE_TEST_CASE("counted kernels draw as the CPU's loops", "", float, double) {
  using T = TestType;
  const std::size_t n = GENERATE(1, 2, 3, 4, 5, 255, 1024, 4099);
  const std::vector<SlotRandom> random = {{1, 0}, {~std::uint64_t{0}, 5}, {77, std::uint64_t{1} << 40}};
  const Draw draw{random.data(), kSlots, n, 9};
  const std::vector<double> rates = {0, 0.3, 1};
  const auto check = [&](auto kernel, auto loop, double within) {
    std::vector<std::vector<T>> found = {poison<T>(n * kSlots)}, expected = {poison<T>(n * kSlots)};
    kernel(found[0].data());
    for (std::size_t b = 0; b < kSlots; ++b) loop(expected[0].data() + b * n, b);
    CHECK(same(found, expected, within));
  };
  const auto mask = [&](double rate, T* out, std::size_t b) {
    fill_dropout_mask(out, n, rate, random[b].key, 9, random[b].step);
  };
  check(
      [&](T* out) {
        dropout_masks(out, draw, {rates.data(), 0}, nullptr);
      },
      [&](T* out, std::size_t b) { mask(rates[b], out, b); }, 0);
  check(
      [&](T* out) {
        dropout_masks(out, draw, {nullptr, 0.25}, nullptr);
      },
      [&](T* out, std::size_t b) { mask(0.25, out, b); }, 0);
  check([&](T* out) { uniforms(out, draw, nullptr); },
        [&](T* out, std::size_t b) { fill_uniform(out, n, random[b].key, 9, random[b].step); }, 0);
  check([&](T* out) { normals(out, draw, nullptr); },
        [&](T* out, std::size_t b) { fill_normal(out, n, random[b].key, 9, random[b].step); }, 1e-6);
}

TEST_CASE("a batch's rows") {
  // By 16, 4 and 1 bytes at a time, and where memory begins askew.
  const auto [bytes, askew] = GENERATE(table<std::size_t, std::size_t>({{32, 0}, {32, 4}, {12, 0}, {7, 0}, {16, 1}}));
  const bool ordered = GENERATE(false, true);
  CAPTURE(bytes, askew, ordered);
  const std::int64_t begin = 3;
  const std::vector<std::int64_t> order = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
  alignas(16) std::array<unsigned char, 512> all{}, found{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<unsigned char>(i * 37);
  batch_rows(found.data() + askew, 5, all.data(), bytes, ordered ? order.data() : nullptr, &begin, nullptr);
  for (std::size_t i = 0; i < 5; ++i) {
    const std::size_t row = ordered ? 6 - i : 3 + i;
    CHECK(std::equal(all.begin() + static_cast<long>(row * bytes), all.begin() + static_cast<long>((row + 1) * bytes),
                     found.begin() + static_cast<long>(askew + i * bytes)));
  }
  CHECK(std::all_of(found.begin() + static_cast<long>(askew + 5 * bytes), found.end(),
                    [](unsigned char byte) { return byte == 0; }));
}

TEST_CASE("the host's numbers are stored, in several launches where they are many") {
  const std::size_t bytes = GENERATE(0, 1, 3968, 3969, 16384);
  std::vector<unsigned char> from(bytes), found(bytes + 1, 7);
  for (std::size_t i = 0; i < bytes; ++i) from[i] = static_cast<unsigned char>(i * 37 + i / 256);
  store(found.data(), from.data(), bytes, nullptr);
  CHECK(std::equal(from.begin(), from.end(), found.begin()));
  CHECK(found.back() == 7);
}

// Whoever adds a kernel has it run here: how many instances of each were launched by the functions that do.
TEST_CASE("every kernel of every file is run on the CPU") {
  const std::map<std::string, std::size_t> instances = {{"mask_kernel", 2},
                                                        {"uniform_kernel", 2},
                                                        {"normal_kernel", 2},
                                                        {"rows_kernel", 3},
                                                        {"store_kernel", 1},
                                                        {"squares_kernel", 2},
                                                        {"factors_kernel", 1},
                                                        {"clear_kernel", 1},
                                                        {"encode_kernel", 1},
                                                        {"decode_kernel", 1},
                                                        {"step_kernel", 2 * optimizers().size()},
                                                        {"cross_entropy_kernel", 2},
                                                        {"cross_entropy_backward_kernel", 2},
                                                        {"loss_sums_kernel", 2},
                                                        {"loss_means_kernel", 2},
                                                        {"add_losses_kernel", 2},
                                                        {"layer_norm_kernel", 2},
                                                        {"layer_norm_input_kernel", 2},
                                                        {"layer_norm_sums_kernel", 2},
                                                        {"layer_norm_weights_kernel", 2},
                                                        {"batch_norm_moments_kernel", 2},
                                                        {"batch_norm_statistics_kernel", 2},
                                                        {"batch_norm_kernel", 2},
                                                        {"batch_norm_sums_kernel", 2},
                                                        {"batch_norm_weights_kernel", 2},
                                                        {"batch_norm_input_kernel", 2},
                                                        {"add_bias_kernel", 2},
                                                        {"bias_sums_kernel", 2},
                                                        {"bias_gradient_kernel", 2},
                                                        {"columns_kernel", 2},
                                                        {"images_kernel", 2},
                                                        {"attention_kernel", 3},
                                                        {"attention_query_kernel", 3},
                                                        {"attention_key_kernel", 3},
                                                        {"embedding_kernel", 2},
                                                        {"embedding_tables_kernel", 2}};
  std::size_t wanted = 0;
  for (const auto& [name, count] : instances) wanted += count;
  std::set<std::string> found;
  for (const auto& file : std::filesystem::directory_iterator(hfta::testing::source_folder() / "fusion/cuda")) {
    if (file.path().extension() != ".cu") continue;
    std::ifstream stream(file.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const std::regex kernel(R"(__global__\s+void\s+(\w+))");
    for (std::sregex_iterator at(text.begin(), text.end(), kernel), end; at != end; ++at) found.insert((*at)[1]);
  }
  std::set<std::string> known;
  for (const auto& [name, count] : instances) known.insert(name);
  CHECK(found == known);

  fake_cuda::launched.clear();
  run_all<float>();
  run_all<double>();
  run_rows();
  run_codec();
  CHECK(fake_cuda::launched.size() == wanted);
}

TEST_CASE("a launch that fails is an error of the device, or of its memory, that names the kernel") {
  const auto [how, kind] = GENERATE(table<cudaError_t, ErrorKind>(
      {{cudaErrorLaunchFailure, ErrorKind::kDevice}, {cudaErrorMemoryAllocation, ErrorKind::kMemory}}));
  const std::int64_t begin = 0;
  std::vector<std::int64_t> found(2);
  fake_cuda::launches = how;
  try {
    batch_rows(found.data(), 1, found.data(), 8, nullptr, &begin, nullptr);
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    CHECK_THAT(error.what(), Catch::Contains("rows of a batch"));
  }
  fake_cuda::launches = cudaSuccess;
  CHECK(cudaGetLastError() == cudaSuccess);  // nobody else is blamed for it
}

}  // namespace hfta::fusion::cuda
