#include "fusion/eager/batching_rule.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <unordered_map>

#include "fusion/eager/batching_rules.hpp"
#include "fusion/eager/layout.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {

at::Tensor OpCall::with_slots(ValueId id) const {
  const c10::IValue& value = values_[static_cast<std::size_t>(id)];
  const at::Tensor tensor = value.isTensor() ? value.toTensor() : wrapped_number(value);
  const bool own = slots() == 0 || slotwise_[static_cast<std::size_t>(id)];
  return own ? tensor : fusion::with_slots(tensor, slots());
}

at::Tensor OpCall::tensor(std::size_t i) const {
  return is_none(i) ? at::Tensor() : with_slots(argument_as<ValueId>(node_, i));
}

std::vector<at::Tensor> OpCall::tensors(std::size_t i) const {
  std::vector<at::Tensor> out;
  const auto* ids = std::get_if<std::vector<ValueId>>(&arg(i));
  if (ids == nullptr) return out;  // an empty list of whatever kind
  for (const ValueId id : *ids) {
    if (id == kNoValue) throw ArgumentError(node_, fmt::format("argument {}: found None in a list of tensors", i));
    out.push_back(with_slots(id));
  }
  return out;
}

bool OpCall::shared(std::size_t i) const {
  const auto* id = std::get_if<ValueId>(&arg(i));
  return id == nullptr || slots() == 0 || !slotwise_[static_cast<std::size_t>(*id)];
}

at::Tensor OpCall::shared_tensor(std::size_t i) const {
  return is_none(i) ? at::Tensor() : values_[static_cast<std::size_t>(argument_as<ValueId>(node_, i))].toTensor();
}

std::vector<std::int64_t> OpCall::ints(std::size_t i) const {
  if (const auto* sizes = std::get_if<std::vector<Size>>(&arg(i))) return resolve(*sizes, values_);
  return argument_as<std::vector<std::int64_t>>(node_, i);
}

std::int64_t OpCall::integer(std::size_t i) const {
  if (const auto* id = std::get_if<ValueId>(&arg(i))) return values_[static_cast<std::size_t>(*id)].toInt();
  return argument_as<std::int64_t>(node_, i);
}

double OpCall::number(std::size_t i) const {
  if (const auto* id = std::get_if<ValueId>(&arg(i))) {
    const c10::IValue& value = values_[static_cast<std::size_t>(*id)];
    return value.isInt() ? static_cast<double>(value.toInt()) : value.toDouble();
  }
  if (const auto* whole = std::get_if<std::int64_t>(&arg(i))) return static_cast<double>(*whole);
  return argument_as<double>(node_, i);
}

std::optional<std::string_view> OpCall::word(std::size_t i) const {
  const auto* word = std::get_if<std::string>(&arg(i));
  return word == nullptr ? std::nullopt : std::optional<std::string_view>(*word);
}

std::optional<at::ScalarType> OpCall::dtype(std::size_t i) const {
  const auto* dtype = std::get_if<DType>(&arg(i));
  return dtype == nullptr ? std::nullopt : std::optional(scalar_type(*dtype));
}

SlotNumbers OpCall::per_slot(std::size_t i) const {
  if (const auto* ref = std::get_if<HyperRef>(&arg(i))) return context_.numbers.hyper(ref->index);
  return std::vector<double>(context_.members(), number(i));
}

const std::vector<BatchingRule>& batching_rules() {
  static const std::vector<BatchingRule> rules = [] {
    std::vector<BatchingRule> all;
    for (auto* family :
         {&linear_rules, &conv_rules, &norm_rules, &pool_rules, &attention_rules, &recurrent_rules, &embedding_rules,
          &random_rules, &shape_rules, &loss_rules, &pointwise_rules, &complex_rules}) {
      for (BatchingRule& rule : (*family)()) all.push_back(std::move(rule));
    }
    return all;
  }();
  return rules;
}

const BatchingRule* find_batching_rule(const std::string& op) {
  static const std::unordered_map<std::string, const BatchingRule*> index = [] {
    std::unordered_map<std::string, const BatchingRule*> map;
    for (const BatchingRule& rule : batching_rules()) map.emplace(rule.op, &rule);
    return map;
  }();
  const auto it = index.find(op);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace hfta::fusion
