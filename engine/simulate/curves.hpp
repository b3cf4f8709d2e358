#pragma once
/// The metrics of simulated trials: invented curves, or recorded ones.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "engine/config.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// Metrics as a pure function of the trial and its epoch. Thread-safe.
class Curves {
 public:
  virtual ~Curves() = default;
  /// The metrics after `epoch` (1-based) epochs of the trial `number`: at least train_loss and those of the study's
  /// objectives.
  [[nodiscard]] virtual std::map<std::string, double> at(int number, const trials::Params& params, int epoch) const = 0;
};

/// Curves such as training gives: a power law from a common start down to a level that depends on how far each
/// parameter is from an optimum somewhere in its range (which the study's seed decides), with noise from epoch to
/// epoch. Each objective has an optimum of its own, and `parameters` grows towards the end of every range. Those of a
/// configuration's repetitions differ in their speed and their noise. One trial in fifty, those furthest off first,
/// diverges to NaN.
[[nodiscard]] std::unique_ptr<Curves> make_invented_curves(const StudyConfig& config);

/// Curves from a CSV file, which may be gzipped, with columns `trial` (any whole numbers), `epoch` (from 1 on, without
/// gaps) and one per metric, as a report or any other program's log gives them: trial n of the study gets the file's
/// n-th trial, from the first again after the last. With columns `param.<name>`, one for each parameter of the study, a
/// trial gets the curve of the configuration nearest to its own (NearestConfiguration; ties to the lower trial of the
/// file); they are read in the first row of a trial, and may be empty in its others. After its last recorded epoch a
/// curve stays where it is. Throws Error{kConfig} naming file and line, or the columns there are if the metric of an
/// objective is none of them.
[[nodiscard]] std::unique_ptr<Curves> read_curves(const std::filesystem::path& file, const StudyConfig& config);

}  // namespace hfta::engine
