#include "engine/driver/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "engine/report/words.hpp"

namespace hfta::engine {
namespace {

constexpr double kWindowSeconds = 30;

std::string counts(const Status& s) {
  const int done = s.complete + s.pruned + s.failed;
  std::string text = s.planned ? fmt::format("{}/{} done", done, *s.planned) : fmt::format("{} done", done);
  text += fmt::format(" ({} complete, {} pruned, {} failed), {} running", s.complete, s.pruned, s.failed, s.running);
  if (s.waiting > 0) text += fmt::format(", {} waiting", s.waiting);
  return text;
}

std::string best(const Status& s) {
  if (s.front) {
    return s.front->empty() ? "no value yet"
                            : fmt::format("Pareto front of {}", counted(s.front->size(), "trial", "trials"));
  }
  if (!s.best) return "no value yet";
  return fmt::format("best {} {} (trial {}, epoch {}: {})", s.objectives.front().metric, value_text(s.best->value),
                     s.best->number, s.best->epoch, params_text(s.best->params));
}

std::string arrays(const Status& s) {
  std::vector<std::string> words;
  for (const ArrayStatus& a : s.arrays) {
    words.push_back(
        fmt::format("{} slots {}/{}{}{}", a.device, a.occupied, a.width, a.partition.empty() ? "" : " ", a.partition));
  }
  return words.empty() ? "no array open" : join(words, "; ");
}

std::string speed(const Status& s) {
  std::string text = fmt::format("{} trial-epochs", s.epochs);
  if (s.rate > 0) text += fmt::format(", {:.3g}/s", s.rate);
  if (s.rate > 0 && s.epochs_left) {
    text += fmt::format(", {} left", duration_text(static_cast<double>(*s.epochs_left) / s.rate));
  }
  return text;
}

}  // namespace

std::string cut_line(const std::string& line, int columns) {
  const auto most = static_cast<std::size_t>(std::max(columns, 4));
  if (line.size() <= most) return line;
  std::size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0) == 0x80) --end;  // not inside a UTF-8 character
  return line.substr(0, end) + "...";
}

void RateMeter::add(double seconds, std::int64_t epochs) {
  points_.emplace_back(seconds, epochs);
  while (points_.size() > 2 && points_[1].first <= seconds - kWindowSeconds) points_.pop_front();
}

double RateMeter::rate() const {
  if (points_.size() < 2) return 0;
  const double elapsed = points_.back().first - points_.front().first;
  return elapsed > 0 ? static_cast<double>(points_.back().second - points_.front().second) / elapsed : 0;
}

std::string status_line(const Status& s) {
  return printable(fmt::format("round {}: {} | {} | {} | {}", s.round, counts(s), best(s), arrays(s), speed(s)));
}

std::vector<std::string> status_lines(const Status& s, int columns) {
  std::vector<std::string> lines = {fmt::format("{}: {}", s.study, counts(s)), best(s),
                                    fmt::format("round {}: {}; {}", s.round, arrays(s), speed(s))};
  for (std::string& line : lines) line = cut_line(printable(line), columns);
  return lines;
}

}  // namespace hfta::engine
