// Ops that run on [c, N, ...] as on [N, ...]: element by element, or with their dimension arguments moved by one.
#include "fusion/array/rules.hpp"

namespace hfta::fusion {

std::vector<Rule> plain_rules() {
  std::vector<Rule> rules;
  for (const char* op :
       {"aten::relu",       "aten::leaky_relu", "aten::elu",        "aten::gelu",      "aten::silu",
        "aten::sigmoid",    "aten::tanh",       "aten::softplus",   "aten::hardswish", "aten::hardsigmoid",
        "aten::hardtanh",   "aten::relu6",      "aten::mish",       "aten::selu",      "aten::add.Tensor",
        "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor", "aten::exp",       "aten::log_sigmoid",
        "aten::celu",       "aten::clone"}) {
    rules.push_back({op, "pointwise", {}, {}});
  }
  for (const char* op : {"aten::softmax.int", "aten::log_softmax.int", "aten::cat", "aten::unflatten.int",
                         "aten::unsqueeze", "aten::squeeze.dim"}) {
    rules.push_back({op, "shape", {}, {1}});
  }
  for (const char* op : {"aten::flatten.using_ints", "aten::transpose.int"}) rules.push_back({op, "shape", {}, {1, 2}});
  return rules;
}

}  // namespace hfta::fusion
