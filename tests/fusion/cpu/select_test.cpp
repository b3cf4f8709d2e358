// Views, joins, and ops that overwrite their input.
#include <catch2/catch.hpp>
#include <limits>

#include "base/error.hpp"
#include "gradient_check.hpp"

namespace hfta::fusion::cpu::testing {
namespace {

using Ints = std::vector<std::int64_t>;

constexpr auto whole(std::int64_t n) { return n; }

// What torch.export writes for "to the end".
constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kBefore = std::numeric_limits<std::int64_t>::min();

struct ViewCase {
  std::string op;
  std::vector<Arg> args;  // behind the input [4, 1, 6]
  Dims sizes;
  double third;  // element 2 of the result where the input counts from 0
};

const std::vector<ViewCase>& view_cases() {
  static const std::vector<ViewCase> cases = {
      {"aten::select.int", {whole(0), whole(-1)}, {1, 6}, 20},
      {"aten::select.int", {whole(2), whole(1)}, {4, 1}, 13},
      {"aten::slice.Tensor", {whole(2), whole(1), whole(100), whole(2)}, {4, 1, 3}, 5},
      {"aten::slice.Tensor", {whole(0), whole(-2), {}, whole(1)}, {2, 1, 6}, 14},
      {"aten::slice.Tensor", {whole(0), {}, {}, whole(1)}, {4, 1, 6}, 2},
      {"aten::slice.Tensor", {whole(0), whole(0), kEnd, whole(1)}, {4, 1, 6}, 2},
      {"aten::slice.Tensor", {whole(2), whole(4), kEnd, whole(1)}, {4, 1, 2}, 10},
      {"aten::slice.Tensor", {whole(-1), whole(-5), kEnd - 1, whole(3)}, {4, 1, 2}, 7},
      {"aten::slice.Tensor", {whole(2), kBefore, whole(-4), whole(1)}, {4, 1, 2}, 6},
      {"aten::slice.Tensor", {whole(0), whole(-100), kEnd, kEnd}, {1, 1, 6}, 2},
      {"aten::slice.Tensor", {whole(2), whole(3), kEnd, kEnd}, {4, 1, 1}, 15},
      {"aten::narrow", {whole(2), whole(3), whole(2)}, {4, 1, 2}, 9},
      {"aten::narrow", {whole(2), whole(-6), whole(5)}, {4, 1, 5}, 2},
      {"aten::squeeze", {}, {4, 6}, 2},
      {"aten::squeeze.dim", {whole(1)}, {4, 6}, 2},
      {"aten::squeeze.dim", {whole(0)}, {4, 1, 6}, 2},
      {"aten::squeeze.dims", {Ints{0, -2}}, {4, 6}, 2},
      {"aten::movedim.int", {whole(2), whole(0)}, {6, 4, 1}, 12},
      {"aten::unflatten.int", {whole(-1), Ints{2, -1}}, {4, 1, 2, 3}, 2},
      {"aten::expand", {Ints{2, -1, 3, 6}, false}, {2, 4, 3, 6}, 2},
      {"aten::clone", {Arg()}, {4, 1, 6}, 2},
      {"aten::contiguous", {Arg()}, {4, 1, 6}, 2},
  };
  return cases;
}

}  // namespace

TEST_CASE("parts and other forms of a tensor") {
  for (const ViewCase& view : view_cases()) {
    CAPTURE(view.op, view.sizes);
    SmallGraph small;
    const ValueId x = small.weight("x", {4, 1, 6});
    std::vector<Arg> args = view.args;
    args.insert(args.begin(), x);
    const ValueId part = small.call(view.op, args);
    small.call("aten::mul.Scalar", {part, 1.0});
    SmallGraph counting = small;
    for (std::size_t i = 0; i < 24; ++i) counting.weights[0][i] = static_cast<double>(i);
    const Outcome outcome = run_training(counting);
    CHECK(outcome.sizes == view.sizes);
    CHECK(outcome.output.at(2) == view.third);
    small.call("aten::mul.Tensor", {part, part});
    check_gradients(small);
  }
}

TEST_CASE("parts without elements disappear where they are joined") {
  struct Range {
    std::int64_t begin, end;
  };
  for (const Range& none : {Range{5, 2}, Range{6, kEnd}, Range{kEnd, kEnd}, Range{0, kBefore}, Range{-1, -3}}) {
    CAPTURE(none.begin, none.end);
    SmallGraph small;
    const ValueId x = small.weight("x", {4, 6});
    const ValueId part = small.call("aten::slice.Tensor", {x, whole(1), none.begin, none.end, whole(1)});
    const ValueId cut = small.call("aten::narrow", {x, whole(1), whole(6), whole(0)});
    small.call("aten::cat", {std::vector<ValueId>{part, x, cut}, whole(1)});
    CHECK(run_training(small).sizes == Dims{4, 6});
    check_gradients(small);
  }
}

TEST_CASE("sizes and positions that no tensor has are refused, with the line") {
  struct Bad {
    std::string op;
    std::vector<Arg> args;  // behind the input [4, 6]
  };
  const std::vector<Bad> cases = {
      {"aten::slice.Tensor", {whole(2), whole(0), kEnd, whole(1)}},
      {"aten::slice.Tensor", {kBefore, whole(0), kEnd, whole(1)}},
      {"aten::slice.Tensor", {whole(0), whole(0), kEnd, whole(0)}},
      {"aten::slice.Tensor", {whole(0), whole(0), kEnd, whole(-1)}},
      {"aten::slice.Tensor", {whole(0), 0.5, kEnd, whole(1)}},
      {"aten::select.int", {whole(0), kEnd}},
      {"aten::select.int", {whole(0), kBefore}},
      {"aten::narrow", {whole(0), whole(2), kEnd}},
      {"aten::narrow", {whole(0), whole(3), whole(2)}},
      {"aten::narrow", {whole(0), whole(0), whole(-1)}},
      {"aten::split.Tensor", {whole(0), whole(0)}},
      {"aten::split.Tensor", {whole(-1), whole(0)}},
      {"aten::chunk", {whole(0), whole(0)}},
      {"aten::split_with_sizes", {Ints{kEnd, kEnd}, whole(0)}},
      {"aten::split_with_sizes", {Ints{-2, 6}, whole(0)}},
      {"aten::view", {Ints{kEnd, kEnd}}},
      {"aten::view", {Ints{-1, -1}}},
      {"aten::view", {Ints{-4, -6}}},
      {"aten::view", {Ints{-1, 0}}},
      {"aten::view", {Ints{5, -1}}},
      {"aten::expand", {Ints{kEnd, 4, 6}, false}},
      {"aten::expand", {Ints{4, 5}, false}},
      {"aten::expand", {Ints{6}, false}},
      {"aten::unsqueeze", {whole(3)}},
      {"aten::unsqueeze", {kBefore}},
      {"aten::transpose.int", {whole(0), whole(2)}},
      {"aten::permute", {Ints{0, 0}}},
      {"aten::permute", {Ints{0}}},
      {"aten::movedim.int", {whole(0), whole(2)}},
      {"aten::flatten.using_ints", {whole(1), whole(0)}},
      {"aten::unflatten.int", {whole(0), Ints{kEnd, 2}}},
      {"aten::squeeze.dim", {whole(2)}},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.op, bad.args.size());
    SmallGraph small;
    std::vector<Arg> args = bad.args;
    args.insert(args.begin(), small.weight("x", {4, 6}));
    small.call(bad.op, args);
    try {
      static_cast<void>(run_training(small));
      FAIL("compiled");
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      CHECK_THAT(error.what(), Catch::StartsWith("here: " + bad.op));
    }
  }
}

TEST_CASE("integers beyond 2^53 stay what they are") {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 60) + 1;
  struct Comparison {
    std::string op;
    Arg other;
    double wanted;
  };
  for (const Comparison& c : {Comparison{"aten::eq.Scalar", kLarge, 1}, Comparison{"aten::eq.Scalar", kLarge - 1, 0},
                              Comparison{"aten::gt.Scalar", kLarge - 1, 1}, Comparison{"aten::lt.Scalar", kLarge, 0}}) {
    CAPTURE(c.op, c.wanted);
    SmallGraph small;
    const ValueId x = small.weight("x", {2});
    const ValueId large = small.call("aten::full", {Ints{2}, kLarge, DType::kInt64});
    const ValueId range = small.call("aten::arange.start", {kLarge, kLarge + 2, DType::kInt64});
    const ValueId first = small.call("aten::slice.Tensor", {range, whole(0), whole(0), whole(1), whole(1)});
    for (const ValueId numbers : {large, first}) {
      SmallGraph one = small;
      const ValueId told = one.call(c.op, {numbers, c.other});
      one.call("aten::where.self", {told, x, one.call("aten::mul.Scalar", {x, 0.0})});
      one.weights[0] = {1, 1};
      CHECK(run_training(one).output == std::vector<double>{c.wanted, c.wanted});
    }
  }
}

TEST_CASE("a tensor cut into pieces and put together in another order") {
  struct Cut {
    std::string op;
    std::vector<Arg> args;
    std::size_t parts;
  };
  for (const Cut& cut :
       {Cut{"aten::chunk", {whole(4), whole(1)}, 4}, Cut{"aten::split.Tensor", {whole(3), whole(1)}, 3},
        Cut{"aten::split_with_sizes", {Ints{1, 2, 4}, whole(-1)}, 3}}) {
    CAPTURE(cut.op);
    SmallGraph small;
    const ValueId x = small.weight("x", {3, 7});
    std::vector<Arg> args = cut.args;
    args.insert(args.begin(), x);
    small.call(cut.op, args, cut.parts);
    std::vector<ValueId> parts;
    for (std::size_t o = cut.parts; o-- > 0;) parts.push_back(small.output(o));
    parts.push_back(x);
    const ValueId y = small.call("aten::cat", {parts, whole(-1)});
    const Outcome outcome = run_training(small);
    CHECK(outcome.sizes == Dims{3, 14});
    CHECK(outcome.output[13] == small.weights[0][6]);
    CHECK(outcome.output[14 + 7] == small.weights[0][7]);
    small.call("aten::mul.Tensor", {y, y});
    check_gradients(small);
  }
}

TEST_CASE("unbind and stack") {
  SmallGraph small;
  const ValueId x = small.weight("x", {3, 2, 4});
  small.call("aten::unbind.int", {x, whole(1)}, 2);
  const std::vector<ValueId> parts = {small.output(1), small.output(0), small.output(1)};
  const ValueId y = small.call("aten::stack", {parts, whole(-1)});
  const Outcome outcome = run_training(small);
  CHECK(outcome.sizes == Dims{3, 4, 3});
  CHECK(outcome.output[0] == small.weights[0][4]);
  CHECK(outcome.output[1] == small.weights[0][0]);
  small.call("aten::mul.Tensor", {y, y});
  check_gradients(small);
}

TEST_CASE("a change of dtype, in all its forms, is none where the dtype stays, and counts become numbers") {
  const Arg none = std::monostate{};
  const Arg cpu = ArrayDevice{};
  for (const auto& [op, rest] : std::vector<std::pair<std::string, std::vector<Arg>>>{
           {"aten::to.dtype", {DType::kFloat64, false, false, none}},
           {"aten::to.dtype", {none, false, false, none}},
           {"aten::to.dtype_layout", {DType::kFloat64, none, cpu, none, false, false, none}},
           {"aten::to.device", {cpu, DType::kFloat64, false, false, none}},
           {"aten::to.other", {}},
           {"aten::type_as", {}}}) {
    CAPTURE(op);
    const bool stays = !rest.empty() && std::holds_alternative<std::monostate>(rest[0]);
    for (const bool counts : {false, true}) {
      if (counts && stays) continue;
      SmallGraph small;
      const ValueId x = small.weight("x", {2, 3});
      const ValueId from = counts ? small.constant("n", {2, 3}, DType::kInt64, {3, -1, 0, 7, 2, 5}) : x;
      std::vector<Arg> args = {from};
      args.insert(args.end(), rest.begin(), rest.end());
      if (rest.empty()) args.emplace_back(x);
      const ValueId y = small.call(op, args);
      small.call("aten::mul.Tensor", {x, y});
      const Outcome outcome = run_training(small);
      CHECK(outcome.output[3] == Approx(small.weights[0][3] * (counts ? 7 : small.weights[0][3])));
      check_gradients(small);
    }
  }
}

TEST_CASE("an op that overwrites what nobody else reads is as good as the plain one") {
  SmallGraph small;
  const ValueId x = small.weight("x", {3, 4});
  const ValueId y = small.call("aten::mul.Scalar", {x, 2.0});
  const ValueId flat = small.call("aten::view", {y, Ints{12}});
  const ValueId active = small.call("aten::tanh_", {flat});
  const ValueId sum = small.call("aten::add_.Tensor", {active, active, 0.5});
  small.call("aten::mul_.Scalar", {sum, 3.0});
  check_gradients(small);
}

TEST_CASE("an op that overwrites what others see is refused") {
  const auto refused = [](const std::function<void(SmallGraph&, ValueId)>& make) {
    SmallGraph small;
    make(small, small.weight("x", {3, 4}));
    CHECK_THROWS_AS(run_training(small), Error);
  };
  refused([](SmallGraph& g, ValueId x) { g.call("aten::relu_", {x}); });  // a weight
  refused([](SmallGraph& g, ValueId x) {                                  // a view of one
    const ValueId flat = g.call("aten::view", {x, Ints{12}});
    g.call("aten::relu_", {flat});
  });
  refused([](SmallGraph& g, ValueId x) {  // read later
    const ValueId y = g.call("aten::mul.Scalar", {x, 2.0});
    const ValueId z = g.call("aten::relu_", {y});
    g.call("aten::add.Tensor", {z, y, whole(1)});
  });
  refused([](SmallGraph& g, ValueId x) {  // read later through a view made before
    const ValueId y = g.call("aten::mul.Scalar", {x, 2.0});
    const ValueId row = g.call("aten::select.int", {y, whole(0), whole(0)});
    const ValueId z = g.call("aten::relu_", {y});
    g.call("aten::add.Tensor", {z, row, whole(1)});
  });
  refused([](SmallGraph& g, ValueId x) {  // what it is a view of is read later
    const ValueId y = g.call("aten::mul.Scalar", {x, 2.0});
    const ValueId row = g.call("aten::select.int", {y, whole(0), whole(0)});
    g.call("aten::relu_", {row});
    g.call("aten::mul.Tensor", {y, y});
  });
}

}  // namespace hfta::fusion::cpu::testing
