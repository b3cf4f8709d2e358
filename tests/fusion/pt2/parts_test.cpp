#include <catch2/catch.hpp>

#include "fusion/graph/names.hpp"
#include "fusion/pt2/ops.hpp"
#include "fusion/pt2/stack_trace.hpp"
#include "fusion/pt2/symbols.hpp"

namespace hfta::fusion::test {
namespace {

using pt2::SymInt;

TEST_CASE("stack traces tell the user's line, and a function with a backward of its own", "[pt2]") {
  const std::string net = "File \"/home/me/net.py\", line 24, in forward\n    ";
  const std::string layer =
      "\n  File \"/usr/lib/torch/nn/modules/linear.py\", line 9, in forward\n    return F.linear(x, w)";
  const std::string own = "\n  File \"/home/me/spike.py\", line 7, in forward\n    return (x > 0).float()";
  const std::string machine =
      "\n  File \"/usr/lib/torch/utils/checkpoint.py\", line 5, in forward\n    outputs = run(x)";
  struct Case {
    std::string trace;
    std::size_t modules;
    const char *where, *function;
  };
  for (const Case& c : std::vector<Case>{
           {net + "y = Spike.apply(self.a(x))" + own, 1, "spike.py:7", "net.py:24: Spike.apply"},
           {net + "y = 2 * f.Spike.apply(x)" + own, 1, "spike.py:7", "net.py:24: f.Spike.apply"},
           {net + "y = self.spike(x)" + own, 1, "spike.py:7", "net.py:24"},
           {net + "y = Spike.apply(self.a(x))" + layer, 1, "net.py:24", ""},
           {net + "y = nn.ReLU()(x)" + layer, 1, "net.py:24", ""},
           {net + "y = self.part(x)" + own, 2, "spike.py:7", ""},
           {net + "y = super().forward(x)" + own, 1, "spike.py:7", ""},
           {net + "def forward(self, x): return Spike.apply(self.a(x))" + own, 1, "spike.py:7",
            "net.py:24: Spike.apply"},
           {net + "def forward(self, x): return spike(x)" + own, 1, "spike.py:7", "net.py:24"},
           {net + "y = super().forward(Spike.apply(x))" + own, 1, "spike.py:7", "net.py:24: Spike.apply"},
           {net + "y = CheckpointFunction.apply(run, x)" + machine, 1, "net.py:24", ""},
           {"File \"/home/me/net.py\", line 24, in step\n    y = Spike.apply(x)" + own, 1, "spike.py:7", ""},
           {"File \"net.py\", line 3", 1, "net.py:3", ""},
           {"", 1, "", ""}}) {
    CAPTURE(c.trace, c.modules);
    CHECK(pt2::where_from(c.trace) == c.where);
    CHECK(pt2::function_from(c.trace, c.modules) == c.function);
  }
}

TEST_CASE("sizes are numbers, multiples of the batch, or what they were at export", "[pt2]") {
  const auto [expression, wanted] = GENERATE(table<std::string, std::int64_t>({
      {"", 7},
      {"Symbol('s0', positive=True, integer=True)", -1},
      {"Mul(Integer(2), Symbol('s0', positive=True, integer=True))", -2},
      {"Mul(Symbol('s0'), Symbol('t'))", -6},
      {"Mul(Integer(2), Symbol('t'))", 12},
      {"FloorDiv(Symbol('t'), Integer(4))", 1},
      {"CleanDiv(Mul(Integer(6), Symbol('s0')), Integer(2))", -3},
      {"Add(Symbol('t'), Integer(-1))", 5},
      {"Mod(Symbol('t'), Integer(4))", 2},
      {"Pow(Symbol('t'), Integer(2))", 36},
      {"Max(Integer(1), Symbol('s0'))", -1},
      {"Min(Integer(4), Symbol('t'))", 4},
      {"Min(Integer(9223372036854775807), Symbol('s0'))", -1},
      {"Min(Integer(9223372036854775807), Symbol('t'))", 6},
      {"Add(Integer(9007199254740993), Symbol('t'))", 9007199254740999},
      {"Add(Integer(9223372036854775807), Symbol('t'))", 99},
      {"FloorDiv(Symbol('t'), Integer(0))", 99},
      {"ceiling(Mul(Rational(1, 4), Symbol('t')))", 2},
      {"Mul(Rational(1, 2), Symbol('t'))", 3},
      {"Add(Symbol('s0'), Integer(1))", 99},
      {"Pow(Symbol('s0'), Integer(2))", 99},
      {"Unheard(Symbol('s0'))", 99},
      {"Symbol('v')", 99},
      {"Mul(Symbol('s0'), Integer(0))", 0},
      {"Add(Symbol('s0'", 99},
      {"Mul(Pow(Integer(10), Integer(300)), Symbol('s0'))", 99},
      {"Symbol('s0') + 1", 99},
  }));
  pt2::Symbols symbols;
  symbols.add_batch("s0");
  symbols.add_hint("t", 6);
  INFO(expression);
  CHECK(symbols.size(SymInt{7, expression, 99}) == wanted);
}

TEST_CASE("deep expressions end", "[pt2]") {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "Add(";
  CHECK(pt2::Symbols().size(SymInt{0, deep, 5}) == 5);
  CHECK(pt2::lone_symbol(deep).empty());
  CHECK(pt2::data_dependent_symbol(deep).empty());
}

TEST_CASE("symbols are found in expressions", "[pt2]") {
  CHECK(pt2::lone_symbol("Symbol('s77', positive=True, integer=True)") == "s77");
  CHECK(pt2::lone_symbol("Mul(Integer(2), Symbol('s77'))").empty());
  CHECK(pt2::data_dependent_symbol("Add(Symbol('s0'), Symbol('u3', integer=True))") == "u3");
  CHECK(pt2::data_dependent_symbol("Symbol('s0')").empty());
}

TEST_CASE("names of calls", "[pt2]") {
  const auto [target, op, number] = GENERATE(table<std::string, std::string, std::string>({
      {"torch.ops.aten.add.Tensor", "aten::add.Tensor", ""},
      {"torch.ops.aten.conv2d.default", "aten::conv2d", ""},
      {"torch.ops.torchvision.nms.default", "torchvision::nms", ""},
      {"torch.ops.higher_order.cond", "", ""},
      {"torch.ops.aten", "", ""},
      {"torch.ops.aten.sym_size.int", "aten::sym_size.int", "number::size"},
      {"_operator.floordiv", "", "number::floordiv"},
      {"torch.sym_max", "", "number::max"},
      {"torch._sym_sqrt", "", "number::sqrt"},
      {"math.trunc", "", "number::trunc"},
      {"os.system", "", ""},
  }));
  CHECK(pt2::op_from(target) == op);
  CHECK(pt2::number_op_from(target) == number);
}

TEST_CASE("asserts are no part of training", "[pt2]") {
  for (const char* op : {"aten::_assert_async.msg", "aten::_assert_scalar", "aten::sym_constrain_range_for_size"}) {
    CHECK(pt2::is_assertion(op));
  }
  CHECK_FALSE(pt2::is_assertion("aten::relu"));
}

TEST_CASE("a star matches anything", "[pt2]") {
  const auto [pattern, text, wanted] = GENERATE(table<std::string, std::string, bool>({{"*", "a.b", true},
                                                                                       {"*", "", true},
                                                                                       {"a.*", "a.b.c", true},
                                                                                       {"a.*", "ab", false},
                                                                                       {"*.bias", "a.b.bias", true},
                                                                                       {"*.bias", "bias", false},
                                                                                       {"a*c*e", "abcde", true},
                                                                                       {"a*c*e", "abcd", false},
                                                                                       {"a", "ab", false},
                                                                                       {"", "", true},
                                                                                       {"**", "x", true}}));
  INFO(pattern << " " << text);
  CHECK(matches(pattern, text) == wanted);
}

}  // namespace
}  // namespace hfta::fusion::test
