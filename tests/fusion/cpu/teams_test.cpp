// Kernels large enough that a team shares them: gradients against differences, and equal bits whatever the team.
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>

#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kOne = 1;

struct Case {
  std::string name;
  std::int64_t shared;  ///< Kernels, at least, of forward and backward, without the error's.
  std::function<void(SmallGraph&)> build;
  bool kinks = false;  ///< A step of differences, or rounding to float, may pass one.
};

std::vector<double> indices(std::int64_t count, std::int64_t below) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<double>(i * 7 % below));
  return values;
}

void linear(SmallGraph& small, std::int64_t rows, std::int64_t in, std::int64_t out) {
  const ValueId x = small.weight("x", {rows, in}), w = small.weight("w", {out, in}), bias = small.weight("b", {out});
  small.call("aten::relu", {small.call("aten::linear", {x, w, bias})});
}

struct Images {
  std::int64_t n, c, size, o, kernel;
  std::int64_t stride = 1, groups = 1;
};

void conv(SmallGraph& small, const Images& k) {
  const ValueId x = small.weight("x", {k.n, k.c, k.size, k.size});
  const ValueId w = small.weight("w", {k.o, k.c / k.groups, k.kernel, k.kernel}), bias = small.weight("b", {k.o});
  const std::int64_t padding = k.kernel / 2;
  const ValueId y =
      small.call("aten::conv2d", {x, w, bias, Ints{k.stride, k.stride}, Ints{padding, padding}, Ints{1, 1}, k.groups});
  small.call("aten::relu", {y});
}

void batch_norm(SmallGraph& small, const Shape& shape, bool residual) {
  const Shape channels = {shape[1]};
  const ValueId x = small.weight("x", shape), w = small.weight("w", channels), b = small.weight("b", channels);
  const ValueId mean = small.weight("mean", channels, false), var = small.weight("var", channels, false);
  ValueId y = small.call("aten::batch_norm", {x, w, b, mean, var, true, 0.1, 1e-5, false});
  if (residual) y = small.call("aten::add.Tensor", {y, small.weight("r", shape), kOne});
  small.call("aten::relu", {y});
}

void attention(SmallGraph& small, std::int64_t key_heads, double rate) {
  const auto input = [&](const char* name, std::int64_t heads) {
    return small.call("aten::transpose.int",
                      {small.weight(name, {3, 40, heads, 16}), std::int64_t{1}, std::int64_t{2}});
  };
  const ValueId q = input("q", 4), k = input("k", key_heads), v = input("v", key_heads);
  small.call("aten::scaled_dot_product_attention", {q, k, v, {}, rate, true, {}, key_heads != 4});
}

void unary(SmallGraph& small, const char* op, std::vector<Arg> more = {}) {
  std::vector<Arg> args = {small.weight("x", {50000})};
  args.insert(args.end(), more.begin(), more.end());
  small.call(op, args);
}

void recurrent(SmallGraph& small) {
  constexpr std::int64_t kSteps = 3, kSamples = 40, kFeatures = 48, kHidden = 64, kGates = 4 * kHidden;
  const ValueId x = small.weight("x", {kSteps, kSamples, kFeatures});
  const std::vector<ValueId> states = {small.weight("h", {1, kSamples, kHidden}),
                                       small.weight("c", {1, kSamples, kHidden})};
  const std::vector<ValueId> params = {small.weight("w_in", {kGates, kFeatures}),
                                       small.weight("w_h", {kGates, kHidden}), small.weight("b_in", {kGates}),
                                       small.weight("b_h", {kGates})};
  small.call("aten::lstm.input", {x, states, params, true, kOne, 0.0, true, false, false}, 3);
  small.graph.nodes.back().outputs.resize(1);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"linear", 4, [](SmallGraph& s) { linear(s, 200, 130, 150); }, true},
      {"linear of few features", 3, [](SmallGraph& s) { linear(s, 2500, 5, 40); }, true},
      {"linear of a power of two", 4, [](SmallGraph& s) { linear(s, 300, 256, 256); }, true},
      {"linear of few samples", 3, [](SmallGraph& s) { linear(s, 9, 900, 300); }, true},
      {"matmul of many", 3,
       [](SmallGraph& s) {
         s.call("aten::matmul", {s.weight("a", {9, 50, 60}), s.weight("b", {9, 60, 45})});
       }},
      {"matmul that repeats a matrix", 1,
       [](SmallGraph& s) {
         s.call("aten::matmul", {s.weight("a", {7, 50, 60}), s.weight("b", {1, 60, 45})});
       }},
      {"matmul of one", 3,
       [](SmallGraph& s) {
         s.call("aten::matmul", {s.weight("a", {150, 160}), s.weight("b", {160, 170})});
       }},
      {"convolution", 6,
       [](SmallGraph& s) {
         conv(s, {3, 20, 14, 70, 3});
       },
       true},
      {"convolution by tiles", 6,
       [](SmallGraph& s) {
         conv(s, {3, 40, 14, 70, 3});
       },
       true},
      {"convolution, images apart", 3,
       [](SmallGraph& s) {
         conv(s, {9, 12, 23, 20, 3});
       },
       true},
      {"convolution by tiles, images apart", 3,
       [](SmallGraph& s) {
         conv(s, {17, 32, 16, 32, 3});
       },
       true},
      {"convolution of few channels, images apart", 3,
       [](SmallGraph& s) {
         conv(s, {10, 2, 24, 20, 3});
       },
       true},
      {"convolution of each channel, images apart", 3,
       [](SmallGraph& s) {
         conv(s, {9, 24, 24, 24, 3, 1, 24});
       },
       true},
      {"convolution of few channels", 3,
       [](SmallGraph& s) {
         conv(s, {6, 3, 28, 40, 3});
       },
       true},
      {"convolution of single pixels", 4,
       [](SmallGraph& s) {
         conv(s, {4, 70, 12, 80, 1});
       },
       true},
      {"convolution with strides", 4,
       [](SmallGraph& s) {
         conv(s, {5, 24, 17, 40, 3, 2});
       },
       true},
      {"convolution in groups", 4,
       [](SmallGraph& s) {
         conv(s, {4, 64, 12, 64, 3, 1, 2});
       },
       true},
      {"convolution of each channel", 3,
       [](SmallGraph& s) {
         conv(s, {8, 150, 12, 150, 3, 1, 150});
       },
       true},
      {"batch norm of images", 3,
       [](SmallGraph& s) {
         batch_norm(s, {6, 70, 13, 13}, false);
       }},
      {"batch norm of few channels", 3,
       [](SmallGraph& s) {
         batch_norm(s, {16, 5, 70, 70}, false);
       },
       true},
      {"batch norm of many channels and few rows", 3,
       [](SmallGraph& s) {
         batch_norm(s, {50, 3000}, true);
       }},
      {"batch norm with a residual", 3,
       [](SmallGraph& s) {
         batch_norm(s, {6, 300, 7, 7}, true);
       }},
      {"layer norm", 2,
       [](SmallGraph& s) {
         const ValueId w = s.weight("w", {40}), b = s.weight("b", {40});
         s.call("aten::layer_norm", {s.weight("x", {1000, 40}), Ints{40}, w, b, 1e-3, true});
       }},
      {"group norm", 2,
       [](SmallGraph& s) {
         const ValueId w = s.weight("w", {12}), b = s.weight("b", {12});
         s.call("aten::group_norm", {s.weight("x", {150, 12, 40}), std::int64_t{3}, w, b, 1e-3, true});
       }},
      {"softmax", 2,
       [](SmallGraph& s) {
         s.call("aten::softmax.int", {s.weight("x", {400, 130}), std::int64_t{-1}, {}});
       }},
      {"softmax of columns", 2,
       [](SmallGraph& s) {
         s.call("aten::softmax.int", {s.weight("x", {3, 130, 150}), std::int64_t{1}, {}});
       }},
      {"log softmax", 2,
       [](SmallGraph& s) {
         s.call("aten::log_softmax.int", {s.weight("x", {400, 130}), std::int64_t{-1}, {}});
       }},
      {"attention", 2, [](SmallGraph& s) { attention(s, 4, 0); }},
      {"attention of grouped queries", 1, [](SmallGraph& s) { attention(s, 2, 0); }},
      {"attention of one key for all queries", 1, [](SmallGraph& s) { attention(s, 1, 0); }},
      {"attention with dropout", 2, [](SmallGraph& s) { attention(s, 4, 0.3); }},
      {"gelu", 2, [](SmallGraph& s) { unary(s, "aten::gelu", {std::string("none")}); }},
      {"tanh", 2, [](SmallGraph& s) { unary(s, "aten::tanh"); }},
      {"elu", 2,
       [](SmallGraph& s) {
         unary(s, "aten::elu", {1.5, 1.0, 1.0});
       }},
      {"dropout", 3,
       [](SmallGraph& s) {
         unary(s, "aten::dropout", {0.4, true});
       }},
      {"product of elements", 3,
       [](SmallGraph& s) {
         s.call("aten::mul.Tensor", {s.weight("x", {300, 151}), s.weight("y", {300, 151})});
       }},
      {"sum with a row", 2,
       [](SmallGraph& s) {
         s.call("aten::add.Tensor", {s.weight("x", {300, 151}), s.weight("y", {151}), kOne});
       }},
      {"copy in another order", 1,
       [](SmallGraph& s) {
         const ValueId turned = s.call("aten::permute", {s.weight("x", {30, 40, 50}), Ints{2, 0, 1}});
         s.call("aten::mul.Tensor", {s.call("aten::reshape", {turned, Ints{50, 1200}}), s.weight("y", {50, 1200})});
       }},
      {"largest pixel", 2,
       [](SmallGraph& s) {
         s.call("aten::max_pool2d",
                {s.weight("x", {9, 20, 16, 16}), Ints{3, 3}, Ints{2, 2}, Ints{1, 1}, Ints{1, 1}, false});
       },
       true},
      {"mean pixel", 2,
       [](SmallGraph& s) {
         s.call("aten::adaptive_avg_pool2d", {s.weight("x", {9, 20, 16, 16}), Ints{3, 3}});
       }},
      {"sum", 2,
       [](SmallGraph& s) {
         s.call("aten::sum.dim_IntList", {s.weight("x", {40, 30, 35}), Ints{1}, false, {}});
       }},
      {"norm", 2,
       [](SmallGraph& s) {
         s.call("aten::linalg_vector_norm", {s.weight("x", {40, 30, 35}), 2.0, Ints{1}, false, {}});
       }},
      {"largest", 2,
       [](SmallGraph& s) {
         s.call("aten::amax", {s.weight("x", {40, 30, 35}), Ints{1}, false});
       }},
      {"embedding", 2,
       [](SmallGraph& s) {
         const ValueId at = s.constant("at", {700}, DType::kInt64, indices(700, 450));
         s.call("aten::embedding", {s.weight("table", {500, 40}), at, std::int64_t{3}, false, false});
       }},
      {"cross entropy", 1,
       [](SmallGraph& s) {
         const ValueId at = s.constant("at", {300}, DType::kInt64, indices(300, 70));
         s.call("aten::cross_entropy_loss", {s.weight("x", {300, 70}), at, {}, kOne, std::int64_t{-100}, 0.1});
       }},
      {"lstm", 10, recurrent},
  };
  return all;
}

}  // namespace

TEST_CASE("kernels that a team shares") {
  for (const Case& c : cases()) {
    SECTION(c.name) {
      SmallGraph small;
      c.build(small);
      CHECK(shared_kernels(small) >= c.shared);
      check_gradients(small, c.kinks ? 1e-5 : 1e-8);
      c.kinks ? static_cast<void>(run_in_float(small)) : check_float(small, 1e-4);
    }
  }
}

}  // namespace hfta::fusion::cpu::testing
