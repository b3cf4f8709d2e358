#include "fusion/cpu/ops/common.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace hfta::fusion::cpu {
namespace {

bool only_looks(const std::string& op) {
  constexpr std::array<std::string_view, 8> kViews = {
      "aten::view",          "aten::reshape",   "aten::_unsafe_view", "aten::flatten.using_ints",
      "aten::transpose.int", "aten::unsqueeze", "aten::permute",      "aten::contiguous"};
  return std::find(kViews.begin(), kViews.end(), op) != kViews.end();
}

}  // namespace

bool fused_relu(LoweringContext& site) {
  Builder& b = site.b;
  ValueId value = site.output();
  for (;;) {
    const auto reader = b.only_reader(value);
    if (!reader) return false;
    const Node& node = b.graph().nodes[*reader];
    const auto* first = std::get_if<ValueId>(&node.args.at(0));
    if (first == nullptr || *first != value) return false;
    if (node.op == "aten::relu" || node.op == "aten::relu_") {
      b.pass_on(*reader);
      return true;
    }
    if (!only_looks(node.op)) return false;
    value = node.outputs.at(0);
  }
}

}  // namespace hfta::fusion::cpu
