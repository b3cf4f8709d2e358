// Curves that were recorded in a CSV file, dealt out in turn or to the nearest configuration.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/number_text.hpp"
#include "base/text.hpp"
#include "engine/simulate/curves.hpp"
#include "engine/simulate/nearest.hpp"
#include "fusion/data/gzip.hpp"
#include "fusion/data/table_file.hpp"

namespace hfta::engine {
namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // most bytes of a file of curves
constexpr std::string_view kParameter = "param.";

using Curve = std::vector<std::map<std::string, double>>;

std::map<std::string, double> metrics_at(const Curve& curve, int epoch) {
  std::map<std::string, double> metrics = curve[std::min(static_cast<std::size_t>(epoch), curve.size()) - 1];
  metrics.try_emplace("train_loss", metrics.begin()->second);
  return metrics;
}

class CurvesInTurn final : public Curves {
 public:
  explicit CurvesInTurn(std::vector<Curve> curves) : curves_(std::move(curves)) {}

  [[nodiscard]] std::map<std::string, double> at(int number, const trials::Params& /*params*/,
                                                 int epoch) const override {
    return metrics_at(curves_[static_cast<std::size_t>(number) % curves_.size()], epoch);
  }

 private:
  std::vector<Curve> curves_;
};

class CurvesOfConfigurations final : public Curves {
 public:
  CurvesOfConfigurations(std::vector<Curve> curves, NearestConfiguration nearest)
      : curves_(std::move(curves)), nearest_(std::move(nearest)) {}

  [[nodiscard]] std::map<std::string, double> at(int /*number*/, const trials::Params& params,
                                                 int epoch) const override {
    return metrics_at(curves_[nearest_.to(params)], epoch);
  }

 private:
  std::vector<Curve> curves_;
  NearestConfiguration nearest_;
};

std::string text_of(const std::filesystem::path& file, const std::string& name) {
  try {
    std::vector<std::byte> bytes = SystemFiles().read(file, kMostBytes);
    const bool gzipped = bytes.size() > 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
    if (gzipped) bytes = fusion::inflate_gzip(bytes, name);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: cannot be read, or is empty: {}", name, error.what()));
  }
}

double number_in(const std::string& text, const std::string& place) {
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (const auto value = parse_number<double>(text)) return *value;
  throw Error(ErrorKind::kConfig, fmt::format("{}: found '{}', wanted a number", place, printable(text)));
}

// The columns of a file, by what they hold.
struct Columns {
  std::size_t trial = 0, epoch = 0;
  std::vector<std::pair<std::size_t, std::string>> metrics, parameters;  // with their names
};

std::size_t column(const std::vector<std::string>& header, const std::string& name, const std::string& place) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  throw Error(ErrorKind::kConfig, fmt::format("{}: found no column '{}', wanted trial, epoch and the metrics, {} among "
                                              "them{}",
                                              place, printable(name), printable(name), suggestion(name, header)));
}

// Either no column is a parameter, or each parameter of the space has one.
void check_parameters(const Columns& columns, const trials::Space& space, const std::string& place) {
  if (columns.parameters.empty()) return;
  std::vector<std::string> found, wanted;
  for (const auto& [index, name] : columns.parameters) found.push_back(name);
  for (const trials::Parameter& parameter : space) wanted.push_back(parameter.name);
  for (const std::string& name : wanted) {
    if (std::find(found.begin(), found.end(), name) != found.end()) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: found no column '{}{}', wanted one for each parameter of the study", place, kParameter,
                            printable(name)));
  }
  for (const std::string& name : found) {
    if (std::find(wanted.begin(), wanted.end(), name) != wanted.end()) continue;
    throw Error(ErrorKind::kConfig, fmt::format("{}: found a column '{}{}', wanted parameters of the study only{}",
                                                place, kParameter, printable(name), suggestion(name, wanted)));
  }
}

Columns columns_of(const std::vector<std::string>& header, const StudyConfig& config, const std::string& place) {
  Columns columns{column(header, "trial", place), column(header, "epoch", place), {}, {}};
  for (const trials::Objective& objective : config.objectives) (void)column(header, objective.metric, place);
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (i == columns.trial || i == columns.epoch) continue;
    const bool parameter = header[i].starts_with(kParameter);
    (parameter ? columns.parameters : columns.metrics)
        .emplace_back(i, parameter ? header[i].substr(kParameter.size()) : header[i]);
  }
  check_parameters(columns, config.searched(), place);
  return columns;
}

struct RecordedTrial {
  Curve curve;
  std::map<std::string, std::string> parameters;  // values of the first row
};

void add_row(const std::vector<std::string>& fields, const Columns& columns, const std::string& place,
             RecordedTrial& trial) {
  if (number_in(fields[columns.epoch], place) != static_cast<double>(trial.curve.size() + 1)) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: epoch: found {}, wanted {}, the trial's next", place,
                                                printable(fields[columns.epoch]), trial.curve.size() + 1));
  }
  for (const auto& [index, name] : columns.parameters) {
    const auto [known, first] = trial.parameters.try_emplace(name, fields[index]);
    if (first || fields[index].empty() || fields[index] == known->second) continue;
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: {}{}: found '{}', wanted '{}', as in the trial's first row, or nothing", place,
                            kParameter, printable(name), printable(fields[index]), printable(known->second)));
  }
  std::map<std::string, double>& metrics = trial.curve.emplace_back();
  for (const auto& [index, name] : columns.metrics) metrics[name] = number_in(fields[index], place);
}

}  // namespace

std::unique_ptr<Curves> read_curves(const std::filesystem::path& file, const StudyConfig& config) {
  const std::string name = printable(file.string());
  const std::string text = text_of(file, name);
  fusion::CsvReader reader(text, name);
  fusion::CsvRecord record;
  if (!reader.next(record)) throw Error(ErrorKind::kConfig, name + ": cannot be read, or is empty");
  const std::size_t wanted = record.fields.size();
  const Columns columns = columns_of(record.fields, config, name);
  std::map<double, RecordedTrial> by_trial;
  while (reader.next(record)) {
    const std::string place = fmt::format("{}:{}", name, record.line);
    if (record.fields.size() != wanted) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: found {} fields, wanted {}", place, record.fields.size(), wanted));
    }
    add_row(record.fields, columns, place, by_trial[number_in(record.fields[columns.trial], place)]);
  }
  if (by_trial.empty()) throw Error(ErrorKind::kConfig, name + ": found no rows below the header");
  std::vector<Curve> curves;
  NearestConfiguration nearest(config.searched());
  for (auto& [number, trial] : by_trial) {
    curves.push_back(std::move(trial.curve));
    if (!columns.parameters.empty()) nearest.add(trial.parameters);
  }
  if (columns.parameters.empty()) return std::make_unique<CurvesInTurn>(std::move(curves));
  return std::make_unique<CurvesOfConfigurations>(std::move(curves), std::move(nearest));
}

}  // namespace hfta::engine
