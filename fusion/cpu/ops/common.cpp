#include "fusion/cpu/ops/common.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "fusion/codec/nonzero.hpp"
#include "fusion/cpu/kernels/output_sums.hpp"
#include "fusion/cpu/kernels/signs.hpp"

namespace hfta::fusion::cpu {
namespace {

bool only_looks(const std::string& op) {
  constexpr std::array<std::string_view, 8> kViews = {
      "aten::view",          "aten::reshape",   "aten::_unsafe_view", "aten::flatten.using_ints",
      "aten::transpose.int", "aten::unsqueeze", "aten::permute",      "aten::contiguous"};
  return std::find(kViews.begin(), kViews.end(), op) != kViews.end();
}

std::uint32_t* words_of(const Run& run, const Tensor& signs) {
  return reinterpret_cast<std::uint32_t*>(run.at<std::byte>(signs));
}

}  // namespace

Tensor copy_of(Builder& b, const Tensor& x) { return b.is_buffer_of_model(x) ? b.copied(x) : x; }

Tensor kept_signs(Builder& b, const Tensor& y) {
  if (!b.encodes()) return {};
  const std::int64_t n = y.numel();
  const auto bytes = mask_words(static_cast<std::size_t>(n)) * sizeof(std::uint32_t);
  Tensor signs = b.fresh({static_cast<std::int64_t>(bytes)}, DType::kUInt8);
  b.emit({y, signs}, [=](const Run& run) { pack_signs(run.team, run.at<float>(y), words_of(run, signs), n); });
  return signs;
}

void emit_mask(Builder& b, const Tensor& dy, const Tensor& signs) {
  const std::int64_t n = dy.numel();
  b.emit({dy, signs}, [=](const Run& run) { mask_by_signs(run.team, run.at<float>(dy), words_of(run, signs), n); });
}

void emit_input_square(Builder& b, const Tensor& weight, const Tensor& x) {
  const auto place = b.bounded(weight);
  if (!place || !x.dense()) return;
  b.emit({x}, [=, n = x.numel(), place = *place](const Run& run) {
    if (const SlotBounds* const bounds = run.coding->measured()) {
      bounds->set_input(place, mean_square(run.at<float>(x), n));
    }
  });
}

void emit_output_sums(Builder& b, const Tensor& weight, const Tensor& dy, std::int64_t rows) {
  const auto place = b.bounded(weight);
  if (!place) return;
  b.emit({dy}, [=, place = *place](const Run& run) {
    if (const SlotBounds* const bounds = run.coding->measured()) {
      sum_output(run.at<float>(dy), rows, bounds->sums(place));
    }
  });
}

bool fused_relu(LoweringContext& site) {
  Builder& b = site.b;
  ValueId value = site.output();
  for (;;) {
    const auto reader = b.only_reader(value);
    if (!reader) return false;
    const Node& node = b.graph().nodes[*reader];
    const auto* first = argument_if<ValueId>(node, 0);
    if (first == nullptr || *first != value) return false;
    if (node.op == "aten::relu" || node.op == "aten::relu_") {
      b.pass_on(*reader);
      return true;
    }
    if (!only_looks(node.op)) return false;
    value = first_output(node);
  }
}

}  // namespace hfta::fusion::cpu
