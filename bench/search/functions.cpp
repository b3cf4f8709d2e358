#include "bench/search/functions.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <variant>

namespace hfta::bench {
namespace {

using trials::DistributionKind;
using trials::Params;

double number(const Params& params, std::size_t i) {
  if (const auto* integer = std::get_if<std::int64_t>(&params[i].second)) return static_cast<double>(*integer);
  return std::get<double>(params[i].second);
}

trials::Parameter range(std::string name, DistributionKind kind, double min, double max, double q = 1) {
  trials::Parameter parameter{std::move(name), {}};
  parameter.distribution.kind = kind;
  parameter.distribution.min = min;
  parameter.distribution.max = max;
  parameter.distribution.q = q;
  return parameter;
}

double branin(const Params& params) {
  constexpr double kPi = std::numbers::pi;
  const double x = number(params, 0), y = number(params, 1);
  const double bent = y - 5.1 / (4 * kPi * kPi) * x * x + 5 / kPi * x - 6;
  return bent * bent + 10 * (1 - 1 / (8 * kPi)) * std::cos(x) + 10;
}

double hartmann6(const Params& params) {
  constexpr std::array<std::array<double, 6>, 4> kA = {
      {{10, 3, 17, 3.5, 1.7, 8}, {.05, 10, 17, .1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, .05, 10, .1, 14}}};
  constexpr std::array<std::array<double, 6>, 4> kP = {{{1312, 1696, 5569, 124, 8283, 5886},
                                                        {2329, 4135, 8307, 3736, 1004, 9991},
                                                        {2348, 1451, 3522, 2883, 3047, 6650},
                                                        {4047, 8828, 8732, 5743, 1091, 381}}};
  constexpr std::array<double, 4> kAlpha = {1.0, 1.2, 3.0, 3.2};
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double far = 0;
    for (std::size_t j = 0; j < 6; ++j) far += kA[i][j] * std::pow(number(params, j) - 1e-4 * kP[i][j], 2);
    sum += kAlpha[i] * std::exp(-far);
  }
  return -sum;
}

double mixed(const Params& params) {
  const double rate = std::log10(number(params, 0)) - std::log10(3e-3);
  const double width = std::log2(number(params, 1)) - std::log2(96);
  const double dropout = number(params, 2) - 0.2;
  const auto& word = std::get<std::string>(params[3].second);
  const double offset = word == "a" ? 0.3 : word == "b" ? 0.0 : word == "c" ? 0.15 : 0.6;
  return rate * rate / 2 + width * width / 20 + offset + 2 * dropout * dropout;
}

bool beyond_disk(const Params& params) {
  return std::pow(number(params, 0) - 2.5, 2) + std::pow(number(params, 1) - 7.5, 2) > 50;
}

bool diverges(const Params& params) { return number(params, 0) > 1e-3; }

trials::Space unit_cube(int dimensions) {
  trials::Space space;
  for (int i = 0; i < dimensions; ++i) {
    space.push_back(range("x" + std::to_string(i), DistributionKind::kUniform, 0, 1));
  }
  return space;
}

trials::Space branin_space() {
  return {range("x0", DistributionKind::kUniform, -5, 10), range("x1", DistributionKind::kUniform, 0, 15)};
}

trials::Space mixed_space() {
  trials::Space space = {range("lr", DistributionKind::kLogUniformValues, 1e-5, 1),
                         range("width", DistributionKind::kQLogUniformValues, 8, 512),
                         range("drop", DistributionKind::kQUniform, 0, 0.9, 0.1),
                         {"opt", {}}};
  space[1].distribution.integer = true;
  space[3].distribution.kind = DistributionKind::kCategorical;
  space[3].distribution.values = {std::string("a"), std::string("b"), std::string("c"), std::string("d")};
  return space;
}

}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"branin", branin_space(), branin, 0.39788735772973816},
      {"hartmann6", unit_cube(6), hartmann6, -3.32236801141551},
      {"mixed", mixed_space(), mixed, 0},
      {"branin_disk", branin_space(), branin, 0.39788735772973816, beyond_disk},
      {"mixed_diverges", mixed_space(), mixed, std::pow(std::log10(3.0), 2) / 2, diverges},
  };
  return all;
}

}  // namespace hfta::bench
