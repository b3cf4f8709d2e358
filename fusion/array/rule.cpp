#include "fusion/array/rule.hpp"

#include <unordered_map>

#include "fusion/array/rules.hpp"

namespace hfta::fusion {

at::Tensor Call::tensor(std::size_t i) const {
  const Arg* a = arg(i);
  if (a == nullptr || std::holds_alternative<std::monostate>(*a)) return {};
  return values_[static_cast<std::size_t>(std::get<ValueId>(*a))];
}

std::vector<at::Tensor> Call::tensors(std::size_t i) const {
  std::vector<at::Tensor> out;
  for (const ValueId id : std::get<std::vector<ValueId>>(node_.args.at(i))) {
    out.push_back(values_[static_cast<std::size_t>(id)]);
  }
  return out;
}

const std::vector<std::int64_t>& Call::ints(std::size_t i) const {
  return std::get<std::vector<std::int64_t>>(node_.args.at(i));
}

std::int64_t Call::integer(std::size_t i, std::int64_t otherwise) const {
  const Arg* a = arg(i);
  return a == nullptr || std::holds_alternative<std::monostate>(*a) ? otherwise : std::get<std::int64_t>(*a);
}

double Call::number(std::size_t i, double otherwise) const {
  const Arg* a = arg(i);
  if (a == nullptr) return otherwise;
  if (const auto* whole = std::get_if<std::int64_t>(a)) return static_cast<double>(*whole);
  return std::get<double>(*a);
}

bool Call::flag(std::size_t i, bool otherwise) const {
  const Arg* a = arg(i);
  return a == nullptr ? otherwise : std::get<bool>(*a);
}

std::vector<double> Call::per_slot(std::size_t i) const {
  const std::size_t n = context_.graph_hypers.size();
  if (const auto* ref = std::get_if<HyperRef>(&node_.args.at(i))) {
    std::vector<double> out;
    for (const std::vector<double>& hypers : context_.graph_hypers) {
      out.push_back(hypers.at(static_cast<std::size_t>(ref->index)));
    }
    return out;
  }
  return std::vector<double>(n, number(i, 0.0));
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (auto* family : {&linear_rules, &conv_rules, &norm_rules, &pool_rules, &dropout_rules, &plain_rules}) {
      for (Rule& rule : (*family)()) all.push_back(std::move(rule));
    }
    return all;
  }();
  return rules;
}

const Rule* find_rule(const std::string& op) {
  static const std::unordered_map<std::string, const Rule*> index = [] {
    std::unordered_map<std::string, const Rule*> map;
    for (const Rule& rule : all_rules()) map.emplace(rule.op, &rule);
    return map;
  }();
  const auto it = index.find(op);
  return it == index.end() ? nullptr : it->second;
}

}  // namespace hfta::fusion
