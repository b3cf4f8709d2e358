#include "engine/report/words.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/text.hpp"

namespace hfta::engine {

std::string value_text(double value) { return fmt::format("{:.6g}", value); }

std::string param_text(const trials::ParamValue& value) {
  const double* number = std::get_if<double>(&value);
  return number != nullptr ? fmt::format("{:.4g}", *number) : printable(trials::to_text(value));
}

std::string params_text(const trials::Params& params) {
  std::vector<std::string> words;
  for (const auto& [name, value] : params) words.push_back(printable(name) + "=" + param_text(value));
  return join(words, " ");
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string counted(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string objectives_text(const trials::Objectives& objectives) {
  std::vector<std::string> words;
  for (const trials::Objective& objective : objectives) {
    words.push_back(fmt::format("{} {}", name_of(objective.goal), printable(objective.metric)));
  }
  return join(words);
}

}  // namespace hfta::engine
