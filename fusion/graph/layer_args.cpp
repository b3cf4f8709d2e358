#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "fusion/graph/layer_builder.hpp"

namespace hfta::fusion {
namespace {

// Sweeps over q_uniform give whole numbers as doubles.
std::optional<std::int64_t> as_integer(const LayerArg& arg) {
  if (const auto* integer = std::get_if<std::int64_t>(&arg)) return *integer;
  const auto* real = std::get_if<double>(&arg);
  if (real == nullptr || std::floor(*real) != *real || std::abs(*real) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

bool within(const ArgRule& rule, double value) {
  return std::isfinite(value) && value >= rule.least && value <= rule.most;
}

std::optional<LayerArg> coerce_integers(const ArgRule& rule, const LayerArg& arg) {
  std::vector<std::int64_t> list;
  if (const auto single = as_integer(arg)) {
    list.assign(static_cast<std::size_t>(std::max(rule.count, 1)), *single);
  } else if (const auto* given = std::get_if<std::vector<std::int64_t>>(&arg)) {
    list = *given;
  }
  const bool fits = rule.count == 0 ? !list.empty() : list.size() == static_cast<std::size_t>(rule.count);
  const bool ok = fits && std::all_of(list.begin(), list.end(),
                                      [&](std::int64_t i) { return within(rule, static_cast<double>(i)); });
  return ok ? std::optional<LayerArg>(list) : std::nullopt;
}

std::string range_text(const ArgRule& rule) {
  const bool low = std::isfinite(rule.least);
  const bool high = std::isfinite(rule.most);
  const auto number = [](double value) { return fmt::format("{}", value); };
  if (low && high && rule.most < 1e6) return " from " + number(rule.least) + " to " + number(rule.most);
  if (low && high) return fmt::format(" from {} to {:.0f}", number(rule.least), rule.most);
  if (low) return " of at least " + number(rule.least);
  if (high) return " of at most " + number(rule.most);
  return "";
}

std::string quoted(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  out.reserve(words.size());
  for (const std::string& word : words) out.push_back(fmt::format("'{}'", word));
  return join(out, " or ");
}

}  // namespace

std::optional<LayerArg> coerce(const ArgRule& rule, const LayerArg& arg) {
  const auto* word = std::get_if<std::string>(&arg);
  if (word != nullptr && std::count(rule.words.begin(), rule.words.end(), *word) > 0) return arg;
  switch (rule.type) {
    case ArgType::kInt: {
      const auto integer = as_integer(arg);
      if (integer && within(rule, static_cast<double>(*integer))) return LayerArg(*integer);
      return std::nullopt;
    }
    case ArgType::kInts:
      return coerce_integers(rule, arg);
    case ArgType::kReal: {
      const auto* integer = std::get_if<std::int64_t>(&arg);
      const auto* real = std::get_if<double>(&arg);
      if (integer == nullptr && real == nullptr) return std::nullopt;
      const double value = integer != nullptr ? static_cast<double>(*integer) : *real;
      return within(rule, value) ? std::optional<LayerArg>(value) : std::nullopt;
    }
    case ArgType::kFlag:
      return std::holds_alternative<bool>(arg) ? std::optional<LayerArg>(arg) : std::nullopt;
    case ArgType::kName:
      return word != nullptr ? std::optional<LayerArg>(arg) : std::nullopt;
    case ArgType::kWord:
      break;
  }
  return std::nullopt;
}

ArgRule window_rule(const std::string& name, int dims, double least, std::optional<LayerArg> fallback) {
  return {.name = name,
          .type = ArgType::kInts,
          .fallback = std::move(fallback),
          .count = dims,
          .least = least,
          .most = static_cast<double>(kMostWindow)};
}

std::string wanted_text(const ArgRule& rule) {
  const std::string range = range_text(rule);
  switch (rule.type) {
    case ArgType::kInt:
      return "an integer" + range;
    case ArgType::kInts: {
      const std::string words = rule.words.empty() ? "" : " or " + quoted(rule.words);
      if (rule.count == 0) return "one or more integers" + range;
      if (rule.count == 1) return "an integer" + range + words;
      return fmt::format("an integer or {} of them, each{}{}", rule.count, range.empty() ? " a size" : range, words);
    }
    case ArgType::kReal:
      return "a number" + range;
    case ArgType::kFlag:
      return "true or false";
    case ArgType::kWord:
      return quoted(rule.words);
    case ArgType::kName:
      return "the name of an earlier layer";
  }
  return "";
}

std::string to_text(const LayerArg& arg) {
  if (const auto* flag = std::get_if<bool>(&arg)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&arg)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&arg)) return shortest(*real);
  if (const auto* word = std::get_if<std::string>(&arg)) return fmt::format("'{}'", printable(*word));
  std::vector<std::string> items;
  for (const std::int64_t item : std::get<std::vector<std::int64_t>>(arg)) items.push_back(std::to_string(item));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

std::optional<std::int64_t> element_count(const Shape& shape) {
  std::int64_t total = 1;
  for (const std::int64_t size : shape) {
    if (size == kBatch) continue;
    if (size > kMostElements || total > kMostElements / std::max<std::int64_t>(size, 1)) return std::nullopt;
    total *= size;
  }
  return total;
}

}  // namespace hfta::fusion
