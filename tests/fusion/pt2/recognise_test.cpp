#include "fusion/pt2/recognise.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "base/random.hpp"

namespace hfta::fusion::pt2 {
namespace {

using Kind = Init::Kind;

StoredTensor tensor_of(const Shape& shape, const std::function<double(std::int64_t)>& value) {
  StoredTensor tensor{shape, DType::kFloat32, {}};
  const std::int64_t n = elements_of(shape, 1);
  tensor.bytes.resize(static_cast<std::size_t>(n) * sizeof(float));
  for (std::int64_t i = 0; i < n; ++i) {
    const auto number = static_cast<float>(value(i));
    std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(i) * sizeof(float), &number, sizeof(float));
  }
  return tensor;
}

double cut_normal(CountedRandom& random) {
  for (;;) {
    const double value = random.normal();
    if (std::abs(value) <= 2) return value;
  }
}

StoredTensor drawn(const Shape& shape, const Init& init, std::uint64_t seed) {
  CountedRandom random(seed, Stream::kInit, 0);
  return tensor_of(shape, [&](std::int64_t) {
    if (init.kind == Kind::kUniform) return (2 * random.uniform() - 1) * init.scale;
    return (init.kind == Kind::kNormal ? random.normal() : cut_normal(random)) * init.scale;
  });
}

std::optional<Init> recognised(const StoredTensor& tensor) { return recognise(sample_of(tensor, -1), tensor); }

struct Scheme {
  const char* name;
  Shape shape;
  Init init;
};

TEST_CASE("schemes are known by what they drew", "[pt2]") {
  const Scheme scheme = GENERATE(values<Scheme>({
      {"kaiming_uniform(a=sqrt(5))", {64, 48}, {Kind::kUniform, 1 / std::sqrt(48.0)}},
      {"of a convolution", {32, 16, 3, 3}, {Kind::kUniform, 1 / std::sqrt(16.0 * 9)}},
      {"xavier_uniform", {64, 96}, {Kind::kUniform, std::sqrt(6.0 / 160)}},
      {"xavier_normal", {64, 96}, {Kind::kNormal, std::sqrt(2.0 / 160)}},
      {"kaiming_uniform, relu", {64, 96}, {Kind::kUniform, std::sqrt(6.0 / 96)}},
      {"kaiming_normal, fan_out, relu", {64, 16, 3, 3}, {Kind::kNormal, std::sqrt(2.0 / (64 * 9))}},
      {"lecun_normal", {64, 96}, {Kind::kTruncatedNormal, 1 / std::sqrt(96.0) / std::sqrt(0.7737413)}},
      {"embedding", {200, 32}, {Kind::kNormal, 1}},
      {"GPT-2", {96, 288}, {Kind::kNormal, 0.02}},
      {"GPT-2's residual, 12 layers", {288, 96}, {Kind::kNormal, 0.02 / std::sqrt(24.0)}},
      {"BERT, cut off", {96, 96}, {Kind::kTruncatedNormal, 0.02}},
      {"a number of two digits", {96, 96}, {Kind::kNormal, 0.35}},
      {"uniform, a number of one digit", {96, 96}, {Kind::kUniform, 0.3}},
      {"sixteen numbers", {16, 1}, {Kind::kNormal, 1}},
  }));
  INFO(scheme.name);
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    INFO(seed);
    const StoredTensor tensor = drawn(scheme.shape, scheme.init, seed);
    CHECK(fits(sample_of(tensor, -1), scheme.init));
    const std::optional<Init> found = recognised(tensor);
    REQUIRE(found);
    const auto n = static_cast<double>(elements_of(scheme.shape, 1));
    if (n < 100) continue;  // few numbers fit several
    CHECK(found->kind == scheme.init.kind);
    CHECK(found->scale == Approx(scheme.init.scale).epsilon(6 / std::sqrt(2 * n)));
  }
}

TEST_CASE("what no scheme drew is not recognised", "[pt2]") {
  CountedRandom random(3, Stream::kInit, 0);
  const auto normal = [&] { return random.normal(); };
  struct Other {
    const char* name;
    Shape shape;
    std::function<double(std::int64_t)> value;
  };
  const std::vector<Other> others = {
      {"heavy tails", {64, 64}, [&](std::int64_t) { return 0.05 * normal() / std::sqrt(0.1 + random.uniform()); }},
      {"a mean that is not 0", {64, 64}, [&](std::int64_t) { return 0.02 * normal() + 0.01; }},
      {"between 0 and 1", {64, 64}, [&](std::int64_t) { return random.uniform(); }},
      {"scales of a trained norm", {64}, [&](std::int64_t) { return 1 + 0.1 * normal(); }},
      {"norms of rows", {8, 1}, [&](std::int64_t) { return 0.577 + 0.02 * normal(); }},
      {"sines", {64, 64}, [](std::int64_t i) { return std::sin(0.01 * static_cast<double>(i)); }},
      {"ones, some of them trained", {64, 64}, [&](std::int64_t i) { return i < 9 ? normal() : 1.0; }},
      {"a row that was trained", {64, 64}, [&](std::int64_t i) { return (i < 64 ? 0.5 : 0.02) * normal(); }},
      {"two numbers", {2}, [](std::int64_t i) { return i == 0 ? 0.3 : -0.7; }},
      {"not a number", {64, 64}, [&](std::int64_t i) { return i == 77 ? std::nan("") : normal(); }},
  };
  for (const Other& other : others) {
    INFO(other.name);
    const StoredTensor tensor = tensor_of(other.shape, other.value);
    CHECK_FALSE(sample_of(tensor, -1).constant);
    CHECK_FALSE(recognised(tensor));
  }
}

TEST_CASE("constants and rows that are left out", "[pt2]") {
  CHECK(sample_of(tensor_of({4, 4}, [](std::int64_t) { return 0.25; }), -1).constant);
  CHECK(sample_of(tensor_of({64, 64}, [](std::int64_t i) { return i % 65 == 0 ? 1.0 : 0.0; }), -1).constant);
  CountedRandom random(4, Stream::kInit, 0);
  const StoredTensor padded = tensor_of({8, 400}, [&](std::int64_t i) { return i < 400 ? 0 : random.normal(); });
  CHECK_FALSE(recognised(padded));
  CHECK(fits(sample_of(padded, 0), {Kind::kNormal, 1}));
}

TEST_CASE("orthogonal matrices", "[pt2]") {
  // A reflection by a random vector, some rows of it.
  CountedRandom random(5, Stream::kInit, 0);
  constexpr int kSize = 24;
  std::vector<double> v(kSize);
  double square = 0;
  for (double& x : v) {
    x = random.normal();
    square += x * x;
  }
  const auto reflected = [&](std::int64_t i) {
    const std::int64_t row = i / kSize, column = i % kSize;
    return std::sqrt(2.0) * ((row == column ? 1 : 0) - 2 * v[static_cast<std::size_t>(row)] *
                                                           v[static_cast<std::size_t>(column)] / square);
  };
  for (const std::int64_t rows : {kSize, 10}) {
    const std::optional<Init> found = recognised(tensor_of({rows, kSize}, reflected));
    REQUIRE(found);
    CHECK(found->kind == Kind::kOrthogonal);
    CHECK(found->scale == Approx(std::sqrt(2.0)).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace hfta::fusion::pt2
