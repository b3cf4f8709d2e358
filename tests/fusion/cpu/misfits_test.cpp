// Calls whose tensors and numbers do not go together are refused with words before a kernel is made of them. Meant to
// be run under AddressSanitizer, too: each was a read or write beyond a buffer, or a division by zero.
#include <catch2/catch.hpp>
#include <limits>

#include "base/error.hpp"
#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr std::int64_t kBig = std::int64_t{1} << 31;
const Arg kNone = std::monostate{};

struct Case {
  std::string op;
  std::vector<Shape> tensors;  ///< The first arguments: weights of these shapes.
  std::vector<Arg> rest;
  std::size_t outputs = 1;
};

std::string message_of(const Case& c) {
  SmallGraph small;
  std::vector<Arg> args;
  for (const Shape& shape : c.tensors) args.emplace_back(small.weight("w" + std::to_string(args.size()), shape));
  args.insert(args.end(), c.rest.begin(), c.rest.end());
  small.call(c.op, args, c.outputs);
  try {
    const Graph graph = with_error(small.graph, DType::kFloat64);
    const std::vector<int> index(graph.nodes.size(), 0);
    static_cast<void>(compile_training(graph, index, DType::kFloat64, 1));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("calls whose arguments do not go together are not compiled") {
  const Shape image = {2, 4, 6, 6}, kernel = {8, 4, 3, 3};
  const Arg ones = Ints{1, 1}, zeros = Ints{0, 0};
  const Arg one = std::int64_t{1};
  const auto conv = [&](const Shape& x, const Shape& w, const Arg& stride, const Arg& padding, const Arg& dilation,
                        std::int64_t groups) {
    return Case{"aten::conv2d", {x, w}, {kNone, stride, padding, dilation, groups}};
  };
  const auto pool = [&](const Arg& size, const Arg& stride, const Arg& padding, const Arg& dilation) {
    return Case{"aten::max_pool2d", {image}, {size, stride, padding, dilation, false}};
  };
  const Case c = GENERATE_COPY(values<Case>({
      {"aten::linear", {{3, 4}, {5, 6}}, {kNone}},
      {"aten::linear", {{3, 4}, {4}}, {kNone}},
      {"aten::linear", {{}, {5, 4}}, {kNone}},
      {"aten::linear", {{3, 0}, {5, 0}}, {kNone}},
      {"aten::linear", {{3, 4}, {5, 4}, {6}}, {}},
      {"aten::linear", {{3, 4}, {5, 4}, {1, 5}}, {}},
      {"aten::linear", {{3, 4}, {5, 4}}, {}},  // too few arguments
      {"aten::linear", {{3, 4}}, {std::string("same"), kNone}},
      conv(image, {8, 3, 3, 3}, ones, zeros, ones, 1),
      conv(image, kernel, zeros, zeros, ones, 1),
      conv(image, kernel, ones, zeros, zeros, 1),
      conv(image, kernel, ones, Ints{-1, -1}, ones, 1),
      conv(image, kernel, ones, zeros, ones, 0),
      conv(image, kernel, ones, zeros, ones, 3),
      conv(image, kernel, ones, zeros, ones, kBig * 2),
      conv(image, kernel, Ints{kBig, kBig}, zeros, ones, 1),
      conv(image, kernel, Ints{}, zeros, ones, 1),
      conv(image, kernel, Ints{1, 1, 1}, zeros, ones, 1),
      conv(image, {8, 4, 9, 9}, ones, zeros, ones, 1),
      conv(image, {8, 4, 3}, ones, zeros, ones, 1),
      conv({2, 4, 6}, kernel, ones, zeros, ones, 1),
      {"aten::conv2d", {image, kernel, {3}}, {ones, zeros, ones, one}},
      {"aten::conv2d.padding", {image, kernel}, {kNone, ones, std::string("full"), ones, one}},
      {"aten::conv2d.padding", {image, kernel}, {kNone, ones, std::string("same"), Ints{kBig * 4, 1}, one}},
      {"aten::conv_transpose2d.input", {image, {4, 8, 3, 3}}, {kNone, ones, zeros, zeros, std::int64_t{0}, ones}},
      {"aten::conv_transpose2d.input", {image, {5, 8, 3, 3}}, {kNone, ones, zeros, zeros, one, ones}},
      {"aten::conv_transpose2d.input", {image, {4, 8, 3, 3}}, {kNone, ones, zeros, Ints{-1, 0}, one, ones}},
      {"aten::conv_transpose2d.input", {image, {4, 8, 3, 3}}, {kNone, Ints{kBig, kBig}, zeros, zeros, one, ones}},
      pool(zeros, ones, zeros, ones),
      pool(Ints{2, 2}, zeros, zeros, ones),
      pool(Ints{2, 2}, ones, Ints{2, 2}, ones),
      pool(Ints{2, 2}, ones, Ints{-1, 0}, ones),
      pool(Ints{2, 2}, ones, zeros, zeros),
      pool(Ints{7, 7}, ones, zeros, ones),
      pool(Ints{}, ones, zeros, ones),
      pool(Ints{2, 2, 2}, ones, zeros, ones),
      pool(Ints{kBig, kBig}, ones, zeros, ones),
      {"aten::adaptive_avg_pool2d", {image}, {Ints{-1, 1}}},
      {"aten::adaptive_avg_pool2d", {image}, {Ints{kBig, 1}}},
      {"aten::adaptive_avg_pool2d", {{2, 4, 0, 6}}, {Ints{1, 1}}},
      {"aten::batch_norm", {image, {3}}, {kNone, kNone, kNone, true, 0.1, 1e-5, true}},
      {"aten::batch_norm", {image, {4}, {2, 2}}, {kNone, kNone, true, 0.1, 1e-5, true}},
      {"aten::batch_norm", {image, {4}, {4}, {4}, {2}}, {true, 0.1, 1e-5, true}},
      {"aten::batch_norm", {image, {4}, {4}, {4}}, {kNone, true, 0.1, 1e-5, true}},
      {"aten::layer_norm", {{3, 4}}, {Ints{5}, kNone, kNone, 1e-5, true}},
      {"aten::layer_norm", {{3, 4}}, {Ints{}, kNone, kNone, 1e-5, true}},
      {"aten::layer_norm", {{3, 4}}, {Ints{2, 3, 4}, kNone, kNone, 1e-5, true}},
      {"aten::layer_norm", {{3, 4}}, {Ints{kBig, kBig}, kNone, kNone, 1e-5, true}},
      {"aten::group_norm", {image}, {std::int64_t{0}, kNone, kNone, 1e-5, true}},
      {"aten::group_norm", {image}, {std::int64_t{3}, kNone, kNone, 1e-5, true}},
      {"aten::softmax.int", {{3, 4}}, {std::int64_t{2}, kNone}},
      {"aten::cumsum", {{3, 4}}, {std::int64_t{2}, kNone}},
      {"aten::cumsum", {{}}, {std::int64_t{0}, kNone}},
      {"aten::transpose.int", {{3, 4}}, {kBig, one}},
      {"aten::transpose.int", {{3, 4}}, {kBig * 2, one}},
      {"aten::transpose.int", {{3, 4}}, {std::int64_t{-3}, one}},
      {"aten::permute", {{3, 4}}, {Ints{0}}},
      {"aten::permute", {{3, 4}}, {Ints{0, 0}}},
      {"aten::permute", {{3, 4}}, {Ints{0, 1, 2}}},
      {"aten::permute", {{3, 4}}, {Ints{0, kBig}}},
      {"aten::unsqueeze", {{3, 4}}, {std::int64_t{5}}},
      {"aten::unsqueeze", {{3, 4}}, {std::int64_t{-4}}},
      {"aten::view", {{3, 4}}, {Ints{-12, -1}}},
      {"aten::view", {{3, 4}}, {Ints{kBig * kBig / 2, -1}}},
      {"aten::view", {{3, 4}}, {Ints{0, -1}}},
      {"aten::flatten.using_ints", {{3, 4, 5}}, {std::int64_t{2}, std::int64_t{1}}},
      {"aten::flatten.using_ints", {{3, 4, 5}}, {std::int64_t{0}, std::int64_t{3}}},
      {"aten::select.int", {{3, 4}}, {std::int64_t{0}, std::int64_t{3}}},
      {"aten::select.int", {{}}, {std::int64_t{0}, std::int64_t{0}}},
      {"aten::slice.Tensor", {{3, 4}}, {std::int64_t{1}, kNone, kNone, std::int64_t{0}}},
      {"aten::slice.Tensor", {{3, 4}}, {std::int64_t{1}, kNone, kNone, std::int64_t{-1}}},
      {"aten::slice.Tensor", {{3, 4}}, {std::int64_t{2}, kNone, kNone, one}},
      {"aten::narrow", {{3, 4}}, {one, std::int64_t{2}, std::int64_t{3}}},
      {"aten::narrow", {{3, 4}}, {one, std::int64_t{3}, std::int64_t{-3}}},
      {"aten::narrow", {{3, 4}}, {one, one, std::numeric_limits<std::int64_t>::max()}},
      {"aten::split_with_sizes", {{3, 4}}, {Ints{5, -1}, one}, 2},
      {"aten::split.Tensor", {{3, 4}}, {std::int64_t{2}, one}, 3},
      {"aten::unbind.int", {{2, 4}}, {std::int64_t{0}}, 3},
      {"aten::chunk", {{3, 4}}, {std::int64_t{0}, one}},
      {"aten::unflatten.int", {{3, 4}}, {one, Ints{-2, -2}}},
      {"aten::expand", {{3, 1}}, {Ints{3, -4}}},
      {"aten::expand", {{3, 1}}, {Ints{kBig * 512, kBig * 512, 3, 4}}},
      {"aten::expand_as", {{3, 4}, {4}}, {}},
      {"aten::expand_as", {{3, 4}, {3, 5}}, {}},
      {"aten::movedim.int", {{3, 4}}, {std::int64_t{2}, std::int64_t{0}}},
      {"aten::squeeze.dim", {{3, 1}}, {kBig}},
      {"aten::matmul", {{3, 4}, {5, 4}}, {}},
      {"aten::matmul", {{2, 3, 4}, {3, 4, 5}}, {}},
      {"aten::matmul", {{}, {4}}, {}},
      {"aten::addmm", {{7}, {3, 4}, {4, 5}}, {one, one}},
      {"aten::add.Tensor", {{3, 4}, {3, 5}}, {one}},
      {"aten::mul.Tensor", {{3, 4}, {2}}, {}},
      {"aten::where.self", {{3, 4}, {3, 4}, {3, 4}}, {}},
      {"aten::scaled_dot_product_attention",
       {{1, 2, 3, 4}, {1, 2, 3, 5}, {1, 2, 3, 4}},
       {kNone, 0.0, false, kNone, false}},
      {"aten::scaled_dot_product_attention",
       {{1, 2, 3, 4}, {1, 2, 6, 4}, {1, 2, 5, 4}},
       {kNone, 0.0, false, kNone, false}},
      {"aten::scaled_dot_product_attention",
       {{1, 5, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}},
       {kNone, 0.0, false, kNone, true}},
      {"aten::sum.dim_IntList", {{3, 4}}, {Ints{2}, false, kNone}},
      {"aten::max.dim", {{3, 4}}, {kBig, false}, 2},
      {"aten::zeros_like", {{3, 4}}, {}},
      {"aten::relu", {}, {}},
  }));
  std::string call = c.op;
  for (const Shape& shape : c.tensors) call += " " + hfta::fusion::to_text(shape);
  INFO(call);
  CHECK_THAT(message_of(c), Catch::Contains("cannot be compiled: "));
}

TEST_CASE("a graph is trained by a loss of one number that something trained has a part in") {
  SmallGraph small;
  const ValueId x = small.weight("x", {3}), frozen = small.weight("frozen", {3}, false);
  const auto message = [](const Graph& graph) {
    try {
      static_cast<void>(compile_training(graph, {0}, DType::kFloat64, 1));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  small.call("aten::relu", {x});
  CHECK(message(small.graph) == "model: cannot be compiled: found a loss that is not one floating-point number");
  small.graph.nodes.clear();
  small.call("aten::sum", {x, {}});
  CHECK(message(small.graph).empty());
  small.graph.nodes.clear();
  small.call("aten::sum", {frozen, {}});
  CHECK_THAT(message(small.graph),
             Catch::StartsWith("model: found no trained parameter that the loss depends on, wanted one"));
}

TEST_CASE("constants beyond what a plan holds are not compiled") {
  for (const double end : {1e9, 1e300, std::numeric_limits<double>::infinity()}) {
    CHECK_FALSE(message_of({"aten::arange", {}, {end, kNone}}).empty());
  }
  CHECK_FALSE(message_of({"aten::zeros", {}, {Ints{-1, 4}, kNone}}).empty());
  CHECK_FALSE(message_of({"aten::zeros", {}, {Ints{kBig, kBig, kBig}, kNone}}).empty());
}

}  // namespace hfta::fusion::cpu::testing
