#pragma once
/// What JSON and CSV reports both have of a trial. Private to engine/report/.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/report/report.hpp"

namespace hfta::engine {

/// The trials of a report: all by number or, with `top`, so many of the best, best first.
[[nodiscard]] std::vector<const trials::Trial*> chosen(const ReportInput& input, std::optional<int> top);

/// Seconds from a trial's start to its end; nullopt where one of them is not known.
[[nodiscard]] std::optional<double> duration(const trials::Trial& trial);

/// 0 for a trial without epochs.
[[nodiscard]] int last_epoch(const trials::Trial& trial);

/// The metrics of a trial's last epoch, without confusion matrices; of several objectives, those of the test set as
/// well, which every trial of the front has.
[[nodiscard]] std::map<std::string, double> last_metrics(const ReportInput& input, const trials::Trial& trial);

}  // namespace hfta::engine
