#pragma once
/// Confusion matrices, put together from the numbers that are recorded one by one (docs/metrics.md).

#include <map>
#include <string>
#include <vector>

#include "engine/report/report.hpp"
#include "trials/trial.hpp"

namespace hfta::engine {

/// A square matrix: how many targets of a class (row) were predicted as a class (column). NaN where an output was NaN.
using ConfusionMatrix = std::vector<std::vector<double>>;

/// Metrics of an epoch, or of a test.
struct SplitMetrics {
  std::map<std::string, double> numbers;
  std::map<std::string, ConfusionMatrix> matrices;  ///< Matrices by the set that was evaluated: "val", "test".
};

/// Takes the cells of whole matrices of two or more classes out of `metrics`. What `kept` names, the study's metric, is
/// among the numbers even if it is a cell.
[[nodiscard]] SplitMetrics split(const std::map<std::string, double>& metrics, const std::string& kept);

/// The epoch that a trial's value and kept weights are of: the last or, with metric.select best, the first of its
/// value. nullptr: it was never trained.
[[nodiscard]] const trials::EpochRecord* valued_epoch(const ReportInput& input, const trials::Trial& trial);

/// A trial's matrices of that epoch.
[[nodiscard]] std::map<std::string, ConfusionMatrix> confusion_of(const ReportInput& input, const trials::Trial& trial);

/// These matrices and those of the test set for people, each in columns, indented by two spaces; a matrix of more than
/// 20 classes is only mentioned. "" where there is none.
[[nodiscard]] std::string confusion_text(const ReportInput& input, const trials::Trial& trial);

/// "[[50,2],[3,45]]"
[[nodiscard]] std::string to_text(const ConfusionMatrix& matrix);

}  // namespace hfta::engine
