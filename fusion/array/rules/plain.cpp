// Ops that run on [c, N, ...] as on [N, ...]: element by element, or with their dimension arguments moved by one.
#include <ATen/ATen.h>

#include "fusion/array/rules.hpp"

namespace hfta::fusion {
namespace {

// The batch size is written as -1; behind the slots it is known.
std::vector<at::Tensor> reshape(const Call& call) {
  const at::Tensor x = call.tensor(0);
  std::vector<std::int64_t> sizes = call.ints(1);
  if (sizes.front() == -1) sizes.front() = x.size(1);
  sizes.insert(sizes.begin(), x.size(0));
  return {x.reshape(sizes)};
}

}  // namespace

std::vector<Rule> plain_rules() {
  std::vector<Rule> rules;
  for (const char* op : {"aten::relu",        "aten::leaky_relu",     "aten::elu",
                         "aten::gelu",        "aten::silu",           "aten::sigmoid",
                         "aten::tanh",        "aten::softplus",       "aten::hardswish",
                         "aten::hardsigmoid", "aten::hardtanh",       "aten::relu6",
                         "aten::mish",        "aten::selu",           "aten::add.Tensor",
                         "aten::sub.Tensor",  "aten::mul.Tensor",     "aten::div.Tensor",
                         "aten::exp",         "aten::log_sigmoid",    "aten::celu",
                         "aten::clone",       "aten::constant_pad_nd"}) {
    rules.push_back({op, "pointwise", {}, {}});
  }
  for (const char* op : {"aten::softmax.int", "aten::log_softmax.int", "aten::cat", "aten::unflatten.int",
                         "aten::unsqueeze", "aten::squeeze.dim"}) {
    rules.push_back({op, "shape", {}, {1}});
  }
  for (const char* op : {"aten::flatten.using_ints", "aten::transpose.int"}) rules.push_back({op, "shape", {}, {1, 2}});
  rules.push_back({"aten::reshape", "shape", {{"behind_slots", reshape, nullptr}}, {}});
  return rules;
}

}  // namespace hfta::fusion
