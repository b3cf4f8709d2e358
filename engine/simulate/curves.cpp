#include "engine/simulate/curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "fusion/data/table_file.hpp"

namespace hfta::engine {
namespace {

using trials::Distribution;
using trials::DistributionKind;

constexpr double kStartLoss = 2.3;  // ln 10: a guess among ten classes
constexpr double kNoise = 0.01;
constexpr double kDivergingShare = 0.02;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of a file of curves

std::optional<double> number_in(const trials::ParamValue& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return static_cast<double>(*i);
  if (const auto* d = std::get_if<double>(&value)) return *d;
  return std::nullopt;
}

bool is_logarithmic(DistributionKind kind) {
  return kind == DistributionKind::kLogUniformValues || kind == DistributionKind::kQLogUniformValues ||
         kind == DistributionKind::kInvLogUniformValues;
}

// Where in its range a value lies, 0 to 1; words by their place in the list.
double place_of(const Distribution& distribution, const trials::ParamValue& value) {
  if (distribution.kind == DistributionKind::kCategorical) {
    const auto found = std::find(distribution.values.begin(), distribution.values.end(), value);
    const auto last = static_cast<double>(std::max<std::size_t>(distribution.values.size(), 2) - 1);
    return static_cast<double>(found - distribution.values.begin()) / last;
  }
  const double x = number_in(value).value_or(0);
  double low = distribution.min, high = distribution.max;
  if (is_logarithmic(distribution.kind)) {
    return std::clamp((std::log(x) - std::log(low)) / std::max(1e-12, std::log(high) - std::log(low)), 0.0, 1.0);
  }
  if (distribution.kind == DistributionKind::kLogUniform) low = std::exp(low), high = std::exp(high);
  return std::clamp((x - low) / std::max(1e-12, high - low), 0.0, 1.0);
}

class InventedCurves final : public Curves {
 public:
  explicit InventedCurves(const StudyConfig& config)
      : space_(config.searched()), metric_(config.metric), goal_(config.goal), seed_(config.seed) {
    for (std::size_t i = 0; i < space_.size(); ++i) {
      optimum_.push_back(CountedRandom(seed_, Stream::kSimulation, 0, i).uniform());
    }
  }

  [[nodiscard]] std::map<std::string, double> at(int number, const trials::Params& params, int epoch) const override {
    const double distance = distance_of(params);
    CountedRandom trial(seed_, Stream::kSimulation, 1, static_cast<std::uint64_t>(number));
    const double decay = 0.5 + trial.uniform();
    const bool diverges = trial.uniform() < 2 * kDivergingShare * distance;
    const int diverges_at = 1 + static_cast<int>(trial.below(4));
    CountedRandom noise(seed_, Stream::kSimulation, static_cast<std::uint64_t>(number) + 2,
                        static_cast<std::uint64_t>(epoch));
    const double level = 0.05 + distance;
    const double loss = level + (kStartLoss - level) * std::pow(1.0 + epoch, -decay) + kNoise * noise.normal();
    const double shown = diverges && epoch >= diverges_at ? std::numeric_limits<double>::quiet_NaN() : loss;
    std::map<std::string, double> metrics = {{"train_loss", shown}, {"val_loss", shown + 0.05}};
    metrics.insert_or_assign(metric_, goal_ == trials::Goal::kMinimize ? shown + 0.05 : std::exp(-shown));
    return metrics;
  }

 private:
  [[nodiscard]] double distance_of(const trials::Params& params) const {
    double sum = 0;
    for (std::size_t i = 0; i < params.size() && i < space_.size(); ++i) {
      const double away = place_of(space_[i].distribution, params[i].second) - optimum_[i];
      sum += away * away;
    }
    return std::sqrt(sum / static_cast<double>(std::max<std::size_t>(1, std::min(params.size(), space_.size()))));
  }

  trials::Space space_;
  std::string metric_;
  trials::Goal goal_;
  std::uint64_t seed_;
  std::vector<double> optimum_;
};

using Curve = std::vector<std::map<std::string, double>>;

class RecordedCurves final : public Curves {
 public:
  explicit RecordedCurves(std::vector<Curve> curves) : curves_(std::move(curves)) {}

  [[nodiscard]] std::map<std::string, double> at(int number, const trials::Params& /*params*/,
                                                 int epoch) const override {
    const Curve& curve = curves_[static_cast<std::size_t>(number) % curves_.size()];
    std::map<std::string, double> metrics = curve[std::min(static_cast<std::size_t>(epoch), curve.size()) - 1];
    metrics.try_emplace("train_loss", metrics.begin()->second);
    return metrics;
  }

 private:
  std::vector<Curve> curves_;
};

std::string text_of(const std::filesystem::path& file, const std::string& name) {
  try {
    const std::vector<std::byte> bytes = SystemFiles().read(file, kMostBytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  } catch (const Error& error) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: cannot be read, or is empty: {}", name, error.what()));
  }
}

double parse_number(const std::string& text, const std::string& place) {
  if (text.empty()) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  throw Error(ErrorKind::kConfig, fmt::format("{}: found '{}', wanted a number", place, printable(text)));
}

std::size_t column(const std::vector<std::string>& header, const std::string& name, const std::string& place) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  throw Error(ErrorKind::kConfig, fmt::format("{}: found no column '{}', wanted trial, epoch and the metrics, {} among "
                                              "them{}",
                                              place, printable(name), printable(name), suggestion(name, header)));
}

}  // namespace

std::unique_ptr<Curves> make_invented_curves(const StudyConfig& config) {
  return std::make_unique<InventedCurves>(config);
}

std::unique_ptr<Curves> read_curves(const std::filesystem::path& file, const StudyConfig& config) {
  const std::string name = printable(file.string());
  const std::string text = text_of(file, name);
  fusion::CsvReader reader(text, name);
  fusion::CsvRecord record;
  if (!reader.next(record)) throw Error(ErrorKind::kConfig, name + ": cannot be read, or is empty");
  const std::vector<std::string> header = record.fields;
  const std::size_t trial_column = column(header, "trial", name), epoch_column = column(header, "epoch", name);
  (void)column(header, config.metric, name);
  std::map<double, Curve> by_trial;
  while (reader.next(record)) {
    const std::string place = fmt::format("{}:{}", name, record.line);
    const std::vector<std::string>& fields = record.fields;
    if (fields.size() != header.size()) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{}: found {} fields, wanted {}", place, fields.size(), header.size()));
    }
    Curve& curve = by_trial[parse_number(fields[trial_column], place)];
    if (parse_number(fields[epoch_column], place) != static_cast<double>(curve.size() + 1)) {
      throw Error(ErrorKind::kConfig, fmt::format("{}: epoch: found {}, wanted {}, the trial's next", place,
                                                  printable(fields[epoch_column]), curve.size() + 1));
    }
    curve.emplace_back();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i != trial_column && i != epoch_column) curve.back()[header[i]] = parse_number(fields[i], place);
    }
  }
  if (by_trial.empty()) throw Error(ErrorKind::kConfig, name + ": found no rows below the header");
  std::vector<Curve> curves;
  curves.reserve(by_trial.size());
  for (auto& [trial, curve] : by_trial) curves.push_back(std::move(curve));
  return std::make_unique<RecordedCurves>(std::move(curves));
}

}  // namespace hfta::engine
