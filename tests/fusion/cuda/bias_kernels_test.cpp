// Biases of linear layers, added and summed by the kernels on the CPU (fake/cuda_runtime.h), against plain loops.
#include "fusion/cuda/bias_kernels.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "fusion/random/draws.hpp"

namespace hfta::fusion::cuda {
namespace {

constexpr int kSlots = 2;

struct Numbers {
  std::vector<double> x, dy, bias;

  Numbers(std::size_t rows, std::size_t features) : x(kSlots * rows * features), dy(x.size()), bias(kSlots * features) {
    std::uint32_t node = 0;
    for (auto* of : {&x, &dy, &bias}) fill_normal(of->data(), of->size(), 1, node++, 3);
  }
};

struct Results {
  std::vector<double> y, dx, dbias;
};

Results by_kernels(std::size_t rows, std::size_t features, const Numbers& numbers, bool relu) {
  const auto blank = [](std::size_t n) { return std::vector<double>(n, std::numeric_limits<double>::quiet_NaN()); };
  const BiasShape shape{kSlots, rows, features};
  Results out{numbers.x, relu ? blank(numbers.x.size()) : numbers.dy, blank(numbers.bias.size())};
  std::vector<double> workspace = blank(bias_workspace(shape));
  add_bias(shape, numbers.bias.data(), relu, out.y.data(), nullptr);
  add_bias_backward(shape, numbers.dy.data(), relu ? out.y.data() : nullptr, relu ? out.dx.data() : nullptr,
                    out.dbias.data(), workspace.data(), nullptr);
  return out;
}

Results by_loops(std::size_t rows, std::size_t features, const Numbers& numbers, bool relu) {
  Results out{numbers.x, numbers.dy, std::vector<double>(numbers.bias.size())};
  for (std::size_t i = 0; i < numbers.x.size(); ++i) {
    const std::size_t of = i / (rows * features) * features + i % features;
    out.y[i] += numbers.bias[of];
    if (relu && out.y[i] <= 0) out.y[i] = out.dx[i] = 0;
    out.dbias[of] += out.dx[i];
  }
  return out;
}

}  // namespace

TEST_CASE("biases are added and their gradients summed, with a relu behind them and without") {
  const auto [rows, features] = GENERATE(table<std::size_t, std::size_t>(
      {{0, 3}, {1, 1}, {7, 31}, {8, 32}, {65, 33}, {128, 2}, {129, 2}, {700, 40}, {1100, 33}, {33000, 1}}));
  const bool relu = GENERATE(false, true);
  CAPTURE(rows, features, relu);
  const Numbers numbers(rows, features);
  const Results found = by_kernels(rows, features, numbers, relu), wanted = by_loops(rows, features, numbers, relu);
  CHECK(found.y == wanted.y);
  CHECK(found.dx == wanted.dx);
  for (std::size_t i = 0; i < wanted.dbias.size(); ++i) {
    CHECK(found.dbias[i] == Approx(wanted.dbias[i]).epsilon(1e-11).margin(1e-11));
  }
}

TEST_CASE("a slot's NaN stays in it, and is seen behind a relu") {
  Numbers numbers(200, 40);
  const Results clean = by_kernels(200, 40, numbers, true);
  std::fill_n(numbers.x.begin(), 200 * 40, std::nan(""));
  const Results found = by_kernels(200, 40, numbers, true);
  CHECK(std::isnan(found.y[17]));
  CHECK(found.dx[17] == numbers.dy[17]);  // as LibTorch's relu has it
  CHECK(std::equal(found.y.begin() + 200 * 40, found.y.end(), clean.y.begin() + 200 * 40));
  CHECK(std::equal(found.dx.begin() + 200 * 40, found.dx.end(), clean.dx.begin() + 200 * 40));
  CHECK(std::equal(found.dbias.begin() + 40, found.dbias.end(), clean.dbias.begin() + 40));
}

}  // namespace hfta::fusion::cuda
