#include "search/space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/config/key_tables.hpp"
#include "engine/config/study.hpp"
#include "trials/json.hpp"

namespace hfta::engine::configuration {
namespace {

using trials::Distribution;
using trials::DistributionKind;
using trials::ParamValue;

constexpr std::size_t kMostValues = 10'000;
constexpr std::size_t kMostName = 512;  // limit of Optuna's tables

// An integer, or one of more digits than 64 bits hold.
bool is_written_as_integer(const Node* node) {
  if (node == nullptr) return false;
  if (!std::holds_alternative<double>(node->value)) return std::holds_alternative<std::int64_t>(node->value);
  const bool is_signed = node->text.starts_with('-') || node->text.starts_with('+');
  return node->text.find_first_not_of("0123456789", is_signed ? 1 : 0) == std::string::npos;
}

bool is_whole(double value) { return std::floor(value) == value; }

ParamValue read_value(const Site& site, const Node& node) {
  if (node.kind != Node::Kind::kScalar || node.out_of_range) {
    site.fail(node, fmt::format("found {}, wanted null, true, false, a number or a word", found_text(node)));
  }
  const auto* real = std::get_if<double>(&node.value);
  if (real != nullptr && !std::isfinite(*real)) {
    site.fail(node, fmt::format("found {}, wanted a finite number", found_text(node)));
  }
  return node.value;
}

template <typename Read>
auto read_list(const Reader& parameter, const char* key, const Read& read) {
  const Node& list = *parameter.find(key);
  const Site site = parameter.site(key);
  if (list.kind != Node::Kind::kList) site.mismatch(list);
  if (list.items.size() > kMostValues) {
    site.fail(list, fmt::format("found {} of them, wanted at most {}", list.items.size(), kMostValues));
  }
  std::vector<decltype(read(site, list))> out;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    out.push_back(read(Site{site.file, join_path(site.path, std::to_string(i)), site.key}, list.items[i]));
  }
  return out;
}

DistributionKind inferred(const Reader& parameter) {
  if (parameter.has("value")) return DistributionKind::kConstant;
  if (parameter.has("values")) return DistributionKind::kCategorical;
  if (!parameter.has("min") && !parameter.has("max")) {
    parameter.fail("", "found neither value, values, nor min and max, wanted one of them, or a distribution");
  }
  const bool integers = is_written_as_integer(parameter.find("min")) && is_written_as_integer(parameter.find("max"));
  return integers ? DistributionKind::kIntUniform : DistributionKind::kUniform;
}

double read_bound(Reader& parameter, const char* key, DistributionKind kind) {
  const double value = parameter.number(key);
  const Node* node = parameter.find(key);
  if (kind != DistributionKind::kIntUniform) return value;
  if (!is_written_as_integer(node)) {
    parameter.fail(key, fmt::format("found {}, wanted an integer", found_text(*node)));
  }
  constexpr auto kMost = static_cast<std::int64_t>(kMostInteger);
  const auto* whole = std::get_if<std::int64_t>(&node->value);
  if (whole == nullptr || *whole < -kMost || *whole > kMost) {
    parameter.fail(key, fmt::format("found {}, wanted an integer between -2^53 and 2^53", found_text(*node)));
  }
  return value;
}

// Multiples of a whole q are whole; they count as integers if the ends that are values themselves are integers.
bool gives_integers(const Distribution& d) {
  const bool ends = d.kind == DistributionKind::kQUniform || d.kind == DistributionKind::kQLogUniformValues;
  return is_whole(d.q) && (!ends || is_whole(d.min));
}

Distribution read_distribution(Reader& parameter) {
  Distribution d;
  d.kind =
      parameter.has("distribution") ? *trials::distribution_from(parameter.word("distribution")) : inferred(parameter);
  const std::string name = trials::name_of(d.kind);
  parameter.record("distribution", name);
  parameter.restrict_to(name, {name});
  const auto belongs = [&](const char* key) {
    const auto& only = parameter.site(key).key.only;
    return std::count(only.begin(), only.end(), name) > 0;
  };
  if (belongs("value")) {
    if (!parameter.has("value")) parameter.fail("value", "found nothing, wanted a value");
    d.values = {read_value(parameter.site("value"), *parameter.find("value"))};
    parameter.record("value", trials::value_json(d.values.front()));
  }
  if (belongs("values")) {
    if (!parameter.has("values")) parameter.fail("values", "found nothing, wanted a list of values");
    d.values = read_list(parameter, "values", read_value);
    parameter.record("values", to_json(*parameter.find("values")));
    if (parameter.has("probabilities")) {
      d.probabilities =
          read_list(parameter, "probabilities", [](const Site& site, const Node& node) { return site.number(node); });
      parameter.record("probabilities", d.probabilities);
    }
  }
  if (belongs("min")) {
    d.min = read_bound(parameter, "min", d.kind);
    d.max = read_bound(parameter, "max", d.kind);
  }
  if (belongs("mu")) {
    d.mu = parameter.number("mu");
    d.sigma = parameter.number("sigma");
  }
  if (belongs("q")) {
    d.q = parameter.number("q");
    d.integer = gives_integers(d);
  }
  return d;
}

// search::validate says which key is wrong, but not where it stands.
void check(const Distribution& distribution, const Reader& parameter) {
  try {
    search::validate(distribution);
  } catch (const Error& error) {
    const std::string message = error.what();
    const std::size_t colon = message.find(": ");
    parameter.fail(message.substr(0, colon), message.substr(colon + 2));
  }
}

void check_name(const std::string& name, const std::string& file, const Entry& entry) {
  const bool unusable = name.empty() || name.size() > kMostName || name.find_first_of("{}") != std::string::npos;
  if (!unusable && printable(name) == name) return;
  Node place = entry.value;
  place.line = entry.line;
  fail_at(file, place, "parameters",
          fmt::format("found the name '{}', wanted 1 to {} printable characters without braces",
                      printable(name.substr(0, 60)), kMostName));
}

}  // namespace

trials::Space read_space(Reader& root, const std::string& file, nlohmann::json& record) {
  const Node* map = root.find("parameters");
  if (map == nullptr || map->is_null()) root.fail("parameters", "found nothing, wanted a map of parameters to search");
  if (map->kind != Node::Kind::kMap) root.site("parameters").mismatch(*map);
  if (map->entries.empty()) root.fail("parameters", "found no parameters, wanted at least one");
  trials::Space space;
  record["parameters"] = nlohmann::json::object();
  for (const Entry& entry : map->entries) {
    check_name(entry.key, file, entry);
    Reader parameter(file, entry.value, join_path("parameters", entry.key), "parameters.*",
                     record["parameters"][entry.key]);
    space.push_back({entry.key, read_distribution(parameter)});
    check(space.back().distribution, parameter);
    record["parameter_order"].push_back(entry.key);  // draws depend on it
  }
  return space;
}

}  // namespace hfta::engine::configuration
