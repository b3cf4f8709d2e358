#include "engine/allocation/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"
#include "base/number_text.hpp"
#include "base/random.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

constexpr double kMostSeconds = 1e9;

/// One line of a file of jobs.
class JobLine {
 public:
  JobLine(std::string_view line, std::string place) : place_(std::move(place)) {
    for (bool more = true; more;) {
      const std::size_t comma = line.find(',');
      more = comma != std::string_view::npos;
      fields_.push_back(trimmed(line.substr(0, comma)));
      if (more) line.remove_prefix(comma + 1);
    }
    if (fields_.size() != 6) {
      throw wrong(fmt::format("{} fields", fields_.size()), "6: devices,pattern,arrival,seconds,sensitive,name");
    }
  }

  [[nodiscard]] int devices(int most) const {
    const auto devices = parse_number<int>(fields_[0]);
    if (!devices || *devices < 1 || *devices > most) {
      throw wrong("devices " + quoted(0), fmt::format("1 to {}", most));
    }
    return *devices;
  }
  [[nodiscard]] double seconds(std::size_t field, double least) const {
    const auto seconds = parse_number<double>(fields_[field]);
    if (!seconds || !(*seconds >= least && *seconds <= kMostSeconds)) {
      throw wrong(quoted(field), fmt::format("seconds, {} to {}", least, kMostSeconds));
    }
    return *seconds;
  }
  [[nodiscard]] bool sensitive() const {
    if (fields_[4] == "1" || fields_[4] == "true" || fields_[4] == "True") return true;
    if (fields_[4] == "0" || fields_[4] == "false" || fields_[4] == "False") return false;
    throw wrong("sensitive " + quoted(4), "0, 1, true or false");
  }
  void check_pattern() const {
    std::string pattern(fields_[1]);
    std::transform(pattern.begin(), pattern.end(), pattern.begin(), [](unsigned char c) { return std::tolower(c); });
    if (pattern != "ring") throw wrong("pattern " + quoted(1), "ring");
  }

 private:
  static std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    return text;
  }
  [[nodiscard]] std::string quoted(std::size_t field) const { return "'" + excerpt(fields_[field]) + "'"; }
  [[nodiscard]] Error wrong(const std::string& found, const std::string& wanted) const {
    return {ErrorKind::kConfig, fmt::format("{}: found {}, wanted {}", place_, found, wanted)};
  }

  std::string place_;
  std::vector<std::string_view> fields_;
};

}  // namespace

std::vector<Job> paper_mix(std::uint64_t seed, int count, int machine, const Communication& communication) {
  constexpr std::uint64_t kNetworks = 6, kSensitive = 4, kDevices = 5, kSeconds = 20;
  std::vector<Job> jobs;
  for (int i = 0; i < count; ++i) {
    CountedRandom random(seed, Stream::kSimulation, 21, static_cast<std::uint64_t>(i));
    Request request;
    request.sensitive = random.below(kNetworks) < kSensitive;
    request.devices = std::min(machine, 1 + static_cast<int>(random.below(kDevices)));
    request.seconds = 5 + static_cast<double>(random.below(kSeconds));
    request.communication = request.sensitive ? communication.sensitive : communication.others;
    jobs.push_back({request, 0});
  }
  return jobs;
}

std::vector<Job> read_jobs(std::string_view text, const std::string& file, int machine,
                           const Communication& communication) {
  const std::string name = printable(file);
  if (text.size() > kMostBytesOfJobs) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: found more than {} bytes", name, kMostBytesOfJobs));
  }
  std::vector<Job> jobs;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    if (number == 1 && line.starts_with("numGpus")) continue;
    const JobLine fields(line, fmt::format("{}:{}", name, number));
    fields.check_pattern();
    Request request;
    request.devices = fields.devices(std::min(machine, kMostRequested));
    request.seconds = fields.seconds(3, 1e-6);
    request.sensitive = fields.sensitive();
    request.communication = request.sensitive ? communication.sensitive : communication.others;
    jobs.push_back({request, fields.seconds(2, 0)});
  }
  if (jobs.empty()) throw Error(ErrorKind::kConfig, name + ": found no jobs");
  return jobs;
}

}  // namespace hfta::engine
