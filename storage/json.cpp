#include "storage/json.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "base/error.hpp"
#include "base/json_int.hpp"
#include "base/text.hpp"
#include "trials/json.hpp"

namespace hfta::storage {
namespace {

using nlohmann::json;
using trials::Distribution;
using trials::ParamValue;

constexpr int kDeepest = 64;  // levels; ours has 4. Functions that walk the values recurse at each level

/// Python's json module writes the bare words NaN, Infinity and -Infinity; here they become trials::number_json()'s
/// objects.
std::string without_python_words(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"NaN", R"({"float":"nan"})"}, {"-Infinity", R"({"float":"-inf"})"}, {"Infinity", R"({"float":"inf"})"}};
  std::string out;
  bool in_string = false;
  int depth = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t taken = 1;
    std::string_view piece = text.substr(i, 1);
    if (in_string) {
      if (text[i] == '\\' && i + 1 < text.size()) piece = text.substr(i, taken = 2);
      if (text[i] == '"') in_string = false;
    } else {
      in_string = text[i] == '"';
      depth += text[i] == '[' || text[i] == '{' ? 1 : text[i] == ']' || text[i] == '}' ? -1 : 0;
      if (depth > kDeepest) {
        throw Error(ErrorKind::kStorage, fmt::format("found JSON more than {} levels deep", kDeepest));
      }
      for (const auto& [word, object] : kWords) {
        if (text.substr(i, word.size()) != word) continue;
        piece = object;
        taken = word.size();
        break;
      }
    }
    out += piece;
    i += taken;
  }
  return out;
}

double number_from(const json& value) {
  const ParamValue read = param_from_json(value);
  if (const auto* integer = std::get_if<std::int64_t>(&read)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&read)) return *real;
  throw Error(ErrorKind::kStorage, "number: found " + printable(value.dump()) + ", wanted a number");
}

json distribution_to_json(const Distribution& distribution) {
  json values = json::array();
  for (const ParamValue& value : distribution.values) values.push_back(param_to_json(value));
  json probabilities = json::array();
  for (const double p : distribution.probabilities) probabilities.push_back(trials::number_json(p));
  return {{"kind", trials::name_of(distribution.kind)},
          {"values", std::move(values)},
          {"probabilities", std::move(probabilities)},
          {"min", trials::number_json(distribution.min)},
          {"max", trials::number_json(distribution.max)},
          {"mu", trials::number_json(distribution.mu)},
          {"sigma", trials::number_json(distribution.sigma)},
          {"q", trials::number_json(distribution.q)},
          {"integer", distribution.integer}};
}

Distribution distribution_from(const json& object) {
  Distribution distribution;
  const auto word = object.at("kind").get<std::string>();
  const auto kind = trials::distribution_from(word);
  if (!kind) throw Error(ErrorKind::kStorage, "distribution: found '" + printable(word) + "', wanted one of ours");
  distribution.kind = *kind;
  for (const json& value : object.at("values")) distribution.values.push_back(param_from_json(value));
  for (const json& p : object.at("probabilities")) distribution.probabilities.push_back(number_from(p));
  distribution.min = number_from(object.at("min"));
  distribution.max = number_from(object.at("max"));
  distribution.mu = number_from(object.at("mu"));
  distribution.sigma = number_from(object.at("sigma"));
  distribution.q = number_from(object.at("q"));
  distribution.integer = object.at("integer").get<bool>();
  return distribution;
}

/// Runs `read` over the parsed text; what nlohmann-json throws becomes our error.
template <typename Read>
auto reading(std::string_view text, const std::string& what, Read read) {
  try {
    return read(parse(text, what));
  } catch (const json::exception& error) {
    throw Error(ErrorKind::kStorage, fmt::format("{}: found JSON of another form ({})", what, printable(error.what())));
  }
}

}  // namespace

json param_to_json(const ParamValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number != nullptr ? trials::number_json(*number) : trials::value_json(value);
}

ParamValue param_from_json(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return std::monostate{};
    case json::value_t::boolean:
      return value.get<bool>();
    case json::value_t::number_integer:
      return value.get<std::int64_t>();
    case json::value_t::number_unsigned: {
      const auto number = value.get<std::uint64_t>();
      if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        return static_cast<std::int64_t>(number);
      }
      return static_cast<double>(number);
    }
    case json::value_t::number_float:
      return value.get<double>();
    case json::value_t::string:
      return value.get<std::string>();
    default:
      if (const std::optional<double> number = trials::non_finite_from(value)) return *number;
      // Optuna takes lists and the like for choices, too, with a warning. They are known by their text.
      return value.dump(-1, ' ', true, json::error_handler_t::replace);
  }
}

std::string dump(const json& value) {
  try {
    return value.dump();
  } catch (const json::exception& error) {
    throw Error(
        ErrorKind::kStorage,
        fmt::format("text for the store: found bytes that are not UTF-8, wanted UTF-8 ({})", printable(error.what())));
  }
}

json parse(std::string_view text, const std::string& what) {
  try {
    return json::parse(without_python_words(text));
  } catch (const json::exception& error) {
    throw Error(ErrorKind::kStorage, fmt::format("{}: found malformed JSON ({})", what, printable(error.what())));
  }
}

std::string space_to_json(const trials::Space& space) {
  json list = json::array();
  for (const trials::Parameter& parameter : space) {
    json object = distribution_to_json(parameter.distribution);
    object["name"] = parameter.name;
    list.push_back(std::move(object));
  }
  return dump(list);
}

trials::Space space_from_json(std::string_view text) {
  return reading(text, "space of the study", [](const json& list) {
    trials::Space space;
    for (const json& object : list) space.push_back({object.at("name").get<std::string>(), distribution_from(object)});
    return space;
  });
}

std::string ints_to_json(const std::vector<int>& numbers) { return json(numbers).dump(); }

std::string progress_to_json(const Progress& progress) {
  return dump({{"seconds", trials::number_json(progress.seconds)}, {"ended_by", progress.ended_by}});
}

Progress progress_from_json(std::string_view text) {
  return reading(text, "progress of the study", [](const json& object) {
    Progress progress{number_from(object.at("seconds")), object.at("ended_by").get<std::string>()};
    if (!(progress.seconds >= 0)) {
      throw Error(ErrorKind::kStorage,
                  fmt::format("progress of the study: found {} seconds, wanted at least 0", progress.seconds));
    }
    return progress;
  });
}

std::vector<int> ints_from_json(std::string_view text) {
  return reading(text, "run_caps of the study", [](const json& list) {
    std::vector<int> numbers;
    for (const json& number : list.get<std::vector<json>>()) numbers.push_back(int_from(number));
    return numbers;
  });
}

}  // namespace hfta::storage
