#include "studies.hpp"

#include <fmt/format.h>

#include <sstream>

#include "base/text.hpp"

namespace hfta::engine::testing {

StudyConfig digits_study(const std::string& lines, const std::string& parameters) {
  static const std::string kBegin = R"(
study: s
parameters:
  lr: {distribution: log_uniform_values, min: 1.0e-4, max: 1.0}
  wd: {values: [0, 1.0e-4, 1.0e-3]}
  dropout: {min: 0.0, max: 0.7}
  hidden: {values: [32, 64, 128]}
)";
  static const std::string kRest = R"(model:
  layers:
    - flatten
    - {linear: [64, "${hidden}"]}
    - relu
    - {dropout: "${dropout}"}
    - {linear: ["${hidden}", 10]}
data: {name: digits, batch_size: 64)";
  static const std::string kMetric = "\nmetric: {name: val_loss, goal: minimize}";
  const bool folds = lines.find("folds:") != std::string::npos;
  const bool measured = lines.find("metric:") != std::string::npos;
  return parse_config(
      lines + (measured ? "" : kMetric) + kBegin + parameters + kRest + (folds ? "}\n" : ", validation: 0.2}\n"),
      "/simulated/s.yaml", {});
}

std::string table_of(storage::Store& store, const StudyConfig& config) {
  std::string text;
  for (const trials::Trial& t : store.trials(config.study)) {
    text += fmt::format("{} {} {} [{}]", t.number, trials::name_of(t.state), t.value() ? shortest(*t.value()) : "-",
                        t.reason);
    for (std::size_t i = 1; i < t.values.size(); ++i) text += " and " + shortest(t.values[i]);
    for (const auto& [name, value] : t.params) text += fmt::format(" {}={}", name, trials::to_text(value));
    for (const trials::Copy& copy : t.copies) {
      text += fmt::format(" copy of {} after {}:", copy.source, copy.epoch);
      for (const auto& [name, value] : copy.params) text += fmt::format(" {}={}", name, trials::to_text(value));
    }
    for (const auto& record : t.epochs) {
      text += fmt::format(" {}:", record.epoch);
      for (const auto& [name, value] : record.metrics) text += fmt::format("{}={},", name, shortest(value));
    }
    text += "\n";
  }
  return text;
}

std::string first_difference(const std::string& found, const std::string& wanted) {
  std::istringstream a(found), b(wanted);
  for (std::string x, y;;) {
    const bool more = static_cast<bool>(std::getline(a, x)), others = static_cast<bool>(std::getline(b, y));
    if (!more && !others) return "";
    if (more != others || x != y)
      return fmt::format("found  {}\nwanted {}", more ? x : "no line", others ? y : "no line");
  }
}

}  // namespace hfta::engine::testing
