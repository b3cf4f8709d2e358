// The rule of bounds on numbers made by hand; what it says of real layers: tests/fusion/cpu/gradient_error_test.cpp.
#include "fusion/codec/bounds.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "fusion/codec/codec.hpp"

namespace hfta::fusion {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<std::int64_t> refreshes(BoundCadence cadence, std::int64_t steps, double most) {
  std::vector<std::int64_t> at;
  for (std::int64_t s = 0; s < steps; ++s) {
    if (!cadence.due()) continue;
    at.push_back(s);
    cadence.moved(most);
  }
  return at;
}

}  // namespace

TEST_CASE("sums of coded values are off by what is predicted") {
  constexpr std::size_t kTerms = 400, kSums = 3000;
  for (const double constant : {0.0, 1.0}) {  // of L: where it is large, what coding does to small values adds up
    for (const float bound : {0.02F, 0.3F}) {
      CountedRandom random(6, Stream::kDropout, 0);
      std::vector<float> x(kTerms), back(kTerms);
      std::vector<std::byte> bytes(most_encoded_bytes(kTerms));
      double off = 0, predicted = 0;
      for (std::size_t s = 0; s < kSums; ++s) {
        for (float& v : x) v = static_cast<float>(std::max(0.0, 2 * random.uniform() - 1));
        decode(std::span(bytes).first(encode(x, bound, bytes)), back);
        double squares = 0, sum = 0, error = 0;
        for (std::size_t i = 0; i < kTerms; ++i) {
          const double l = constant + random.uniform() - 0.5;
          squares += l * l;
          sum += l;
          error += l * (static_cast<double>(back[i]) - static_cast<double>(x[i]));
        }
        off += error * error;
        const OutputSums outputs{squares, sum * sum, kTerms};
        predicted += std::pow(gradient_error({x, 1}, {&outputs, 1}, bound), 2);
      }
      CAPTURE(constant, bound);
      CHECK(std::sqrt(predicted / off) == Approx(1).epsilon(0.08));
    }
  }
}

TEST_CASE("sums are off by what is asked for because zeros come back as zeros") {
  constexpr std::size_t kTerms = 2000, kSums = 400;
  constexpr double kNonzero = 0.1, kSigma = 0.1;
  CountedRandom random(8, Stream::kDropout, 0);
  std::vector<float> x(kTerms), back(kTerms), l(kTerms);
  std::vector<std::byte> bytes(most_encoded_bytes(kTerms));
  double off = 0, off_without = 0;  // without: zeros are off as all others are
  for (std::size_t s = 0; s < kSums; ++s) {
    OutputSums outputs{0, 0, kTerms};
    double sum = 0, error = 0, of_zeros = 0;
    for (std::size_t i = 0; i < kTerms; ++i) {
      x[i] = random.uniform() < kNonzero ? static_cast<float>(1 + random.uniform()) : 0;
      l[i] = static_cast<float>(random.uniform() - 0.5);
      outputs.squares += static_cast<double>(l[i] * l[i]);
      sum += static_cast<double>(l[i]);
    }
    outputs.square_of_sum = sum * sum;
    const float bound = bound_for({x, 1}, {&outputs, 1}, kSigma);
    decode(std::span(bytes).first(encode(x, bound, bytes)), back);
    for (std::size_t i = 0; i < kTerms; ++i) {
      error += static_cast<double>(l[i]) * (static_cast<double>(back[i]) - static_cast<double>(x[i]));
      const double noise = static_cast<double>(bound) * (2 * random.uniform() - 1);
      if (x[i] == 0) of_zeros += static_cast<double>(l[i]) * noise;
    }
    off += error * error / kSums;
    off_without += (error + of_zeros) * (error + of_zeros) / kSums;
  }
  CHECK(std::sqrt(off) == Approx(kSigma).epsilon(0.25));
  CHECK(std::sqrt(off_without) > 2 * kSigma);
}

TEST_CASE("a bound makes no more than the error that was asked for, and about as much") {
  std::vector<float> x(2000);  // two equal channels
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::max(0.0, std::sin(0.7 * static_cast<double>(i / 2))));
  for (const double sigma : {1e-9, 1e-3, 0.02}) {
    for (const double coherent : {0.0, 2.0, 1000.0}) {
      const OutputSums outputs[] = {{2, coherent * 2, 1000}, {0.1, coherent * 0.1, 1000}};
      const SavedInput input{x, 2};
      const float bound = bound_for(input, outputs, sigma);
      CAPTURE(sigma, coherent, bound);
      CHECK(gradient_error(input, outputs, bound) <= sigma);
      CHECK(std::max(gradient_error(input, outputs, bound), uniform_error(input, outputs, bound)) > 0.5 * sigma);
    }
  }
}

TEST_CASE("a channel whose values are all zero does not count, however large its gradient") {
  const std::vector<float> x(100, 0.7F);
  std::vector<float> both;  // beside a channel of zeros
  for (const float v : x) both.insert(both.end(), {0, v});
  const OutputSums outputs[] = {{1e9, 1e9}, {1, 1}}, one[] = {{1, 1}};
  CHECK(uniform_error({both, 2}, outputs, 0.1F) == Approx(uniform_error({x, 1}, one, 0.1F) / std::sqrt(2.0)));
}

TEST_CASE("sums hold for the channels of their group") {
  std::vector<float> x;  // four channels of growing errors
  for (int r = 0; r < 50; ++r) x.insert(x.end(), {0.1F, 0.2F, 0.3F, 0.4F});
  const OutputSums groups[] = {{4, 1, 50}, {9, 2, 50}}, each[] = {groups[0], groups[0], groups[1], groups[1]};
  CHECK(gradient_error({x, 4}, groups, 0.35F) == gradient_error({x, 4}, each, 0.35F));
  CHECK(gradient_error({x, 4}, groups, 0.35F) != Approx(gradient_error({x, 4}, {groups, 1}, 0.35F)));
}

TEST_CASE("a layer of which nothing is known has a bound by its input alone") {
  constexpr std::size_t kTerms = 500, kSums = 2000;
  CountedRandom random(7, Stream::kDropout, 0);
  std::vector<float> x(kTerms), back(kTerms);
  std::vector<std::byte> bytes(most_encoded_bytes(kTerms));
  double off = 0, gradient = 0, share = 0.02;
  for (std::size_t s = 0; s < kSums; ++s) {  // L has nothing to do with x
    for (float& v : x) v = static_cast<float>(std::max(0.0, 2 * random.uniform() - 1));
    decode(std::span(bytes).first(encode(x, first_bound({x, 1}, share), bytes)), back);
    double sum = 0, error = 0;
    for (std::size_t i = 0; i < kTerms; ++i) {
      const double l = random.uniform() - 0.5;
      sum += l * static_cast<double>(x[i]);
      error += l * (static_cast<double>(back[i]) - static_cast<double>(x[i]));
    }
    off += error * error / kSums;
    gradient += std::abs(sum) / kSums;
  }
  CHECK(std::sqrt(off) / (share * gradient) == Approx(1).epsilon(0.08));
  CHECK(first_bound({x, 1}, 0) == 0);
  CHECK(first_bound({}, share) == 0);
  const std::vector<float> zeros(9, 0), odd = {1, static_cast<float>(kNan)};
  CHECK(first_bound({zeros, 1}, share) == 0);
  CHECK(first_bound({odd, 1}, share) == 0);
}

TEST_CASE("where no bound can be told, everything is kept as it is") {
  const std::vector<float> x = {1, 2, 3}, zeros = {0, 0};
  const OutputSums sound{1, 1};
  for (const double sigma : {0.0, -1.0, kNan, kInfinity}) CHECK(bound_for({x, 1}, {&sound, 1}, sigma) == 0);
  for (const double squares : {0.0, -1.0, kNan, kInfinity, 1e-300}) {
    const OutputSums outputs{squares, 1};
    CHECK(bound_for({x, 1}, {&outputs, 1}, 0.1) == 0);
  }
  const OutputSums odd{1, kNan}, nowhere{1, 1, 0};
  CHECK(bound_for({zeros, 1}, {&sound, 1}, 0.1) == 0);
  CHECK(bound_for({x, 1}, {&odd, 1}, 0.1) == 0);
  CHECK(bound_for({x, 1}, {&nowhere, 1}, 0.1) >= 0);
  CHECK(bound_for({x, 1}, {}, 0.1) == 0);
  CHECK(bound_for({}, {&sound, 1}, 0.1) == 0);
}

TEST_CASE("errors of values that have none are not counted") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {0, 0.3F, -0.3F, nan, std::numeric_limits<float>::infinity()};
  const CodingError error = coding_errors({x, 1}, 0.1F).front();
  CHECK(error.mean == Approx(0).margin(1e-9));
  CHECK(error.square == Approx(2 * 0.01 / 5));
  CHECK(coding_errors({x, 1}, 0).front().square == 0);
}

TEST_CASE("the gradient's scale is told from states that sum it and that average it") {
  std::vector<float> momentum(10, 0), average(10, 0);
  for (int step = 0; step < 400; ++step) {
    for (std::size_t i = 0; i < momentum.size(); ++i) {
      const float g = i % 2 == 0 ? 0.3F : -0.3F;
      momentum[i] = 0.9F * momentum[i] + g;
      average[i] += 0.1F * (g - average[i]);
    }
  }
  GradientScale of_momentum, of_average;
  of_momentum.add(momentum);
  of_average.add(average);
  CHECK(of_momentum.value(1 / (1 - 0.9)) == Approx(0.3));
  CHECK(of_average.value(1) == Approx(0.3));
  CHECK(GradientScale().value(1) == 0);
}

TEST_CASE("the gradient's scale told in pieces has the bits of all at once") {
  std::vector<float> state(1000);
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = std::sin(static_cast<float>(i)) * 1e3F;
  GradientScale whole, pieces;
  whole.add(state);
  for (const std::size_t first : {0, 1, 130, 999}) {
    const std::size_t end = first == 0 ? 1 : first == 1 ? 130 : first == 130 ? 999 : 1000;
    pieces.add(std::span(state).subspan(first, end - first));
  }
  CHECK(pieces.value(1) == whole.value(1));
}

TEST_CASE("bounds are found anew at doubling distances, and at every step while they move") {
  CHECK(refreshes({.interval = 10}, 40, 1.5) == std::vector<std::int64_t>{0, 2, 6, 14, 24, 34});
  CHECK(refreshes({.interval = 10}, 4, 2.5) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(refreshes({.interval = 10}, 3, kNan) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(refreshes({.interval = 1}, 3, 1) == std::vector<std::int64_t>{0, 1, 2});
  BoundCadence cadence{.interval = 8, .current = 8};
  cadence.moved(4);
  CHECK(cadence.current == 4);
  cadence.moved(1);
  cadence.moved(1);
  CHECK(cadence.current == 8);
}

TEST_CASE("a cadence that is copied goes on as the other one") {
  BoundCadence one{.interval = 7};
  for (int s = 0; s < 9; ++s) {
    if (one.due()) one.moved(1);
  }
  BoundCadence other = one;
  for (int s = 0; s < 30; ++s) CHECK(one.due() == other.due());
}

TEST_CASE("movement") {
  CHECK(movement(2, 1) == 2);
  CHECK(movement(1, 3) == 3);
  CHECK(movement(0, 0) == 1);
  CHECK(movement(0, 1) == kInfinity);
  CHECK(movement(1, 0) == kInfinity);
}

TEST_CASE("the gain of a batch norm is the noise in what it passes on, in a simulation") {
  // dx of a norm without noise and with it, and the gradients that a layer of inputs x below it makes of both.
  constexpr std::size_t kRows = 4000, kInputs = 6;
  constexpr double kBound = 0.05;
  CountedRandom random(3, Stream::kDropout, 0);
  const auto normal = [&] { return random.normal(); };
  std::vector<std::array<double, kInputs>> x(kRows);
  std::vector<double> xn(kRows), dy(kRows);
  std::array<double, kInputs> weights = {};
  for (double& w : weights) w = normal();
  for (std::size_t i = 0; i < kRows; ++i) {
    for (double& v : x[i]) v = normal();
    xn[i] = std::inner_product(weights.begin(), weights.end(), x[i].begin(), 0.0);
  }
  const double size = std::sqrt(std::inner_product(xn.begin(), xn.end(), xn.begin(), 0.0) / kRows);
  for (double& v : xn) v /= size;
  for (std::size_t i = 0; i < kRows; ++i) dy[i] = normal() + 0.3 * xn[i] + 0.2;
  const auto mean = [&](const auto& f) {
    double sum = 0;
    for (std::size_t i = 0; i < kRows; ++i) sum += f(i);
    return sum / kRows;
  };
  const double mean_dy = mean([&](std::size_t i) { return dy[i]; });
  const auto gradient = [&](const std::vector<double>& read) {
    const double product = mean([&](std::size_t i) { return dy[i] * read[i]; });
    std::array<double, kInputs> all = {};
    for (std::size_t k = 0; k < kInputs; ++k) {
      all[k] = kRows * mean([&](std::size_t i) { return (dy[i] - mean_dy - read[i] * product) * x[i][k]; });
    }
    return all;
  };
  const auto exact = gradient(xn);
  double error = 0;
  constexpr int kTimes = 400;
  for (int t = 0; t < kTimes; ++t) {
    std::vector<double> read = xn;
    for (double& v : read) v += kBound * (2 * random.uniform() - 1);
    const auto found = gradient(read);
    for (std::size_t k = 0; k < kInputs; ++k) error += std::pow(found[k] - exact[k], 2) / (kTimes * kInputs);
  }
  const double square = mean([&](std::size_t i) { return dy[i] * dy[i]; }),
               product = mean([&](std::size_t i) { return dy[i] * xn[i]; });
  const NormChannel channel{.scale = 1, .square = square, .mean = mean_dy, .product = product};
  const double gain = noise_gain({&channel, 1}, 1.0 / kInputs), of_dx = square - mean_dy * mean_dy - product * product;
  const double foreseen = kBound * gain / std::sqrt(3.0) * std::sqrt(kRows * of_dx);  // inputs' mean square is 1
  CHECK(std::sqrt(error) == Approx(foreseen).epsilon(0.1));
}

TEST_CASE("the coherence of channels is their mean squared correlation") {
  constexpr std::size_t kRows = 512, kChannels = 8;
  CountedRandom random(4, Stream::kDropout, 0);
  const auto rows = [&](double common) {  // of variance 1, `common` of which all channels share
    std::vector<float> all;
    for (std::size_t r = 0; r < kRows; ++r) {
      const double shared = random.normal();
      for (std::size_t c = 0; c < kChannels; ++c) {
        all.push_back(static_cast<float>(std::sqrt(common) * shared + std::sqrt(1 - common) * random.normal()));
      }
    }
    return all;
  };
  const std::vector<float> apart = rows(0), some = rows(0.7), equal = rows(1);
  CHECK(coherence_of({apart, kChannels}) == kLeastCoherence);
  CHECK(coherence_of({some, kChannels}) == Approx(0.49).epsilon(0.25));
  CHECK(coherence_of({equal, kChannels}) == Approx(1).epsilon(0.25));
  CHECK(coherence_of({equal, 1}) == 1);
  CHECK(coherence_of({{}, 3}) == 1);
  CHECK(coherence_of({std::vector<float>(6, std::numeric_limits<float>::quiet_NaN()), 3}) == 1);
}

}  // namespace hfta::fusion
