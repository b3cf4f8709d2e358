#include "engine/cli/progress_view.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "engine/cli/output.hpp"
#include "engine/driver/progress.hpp"

namespace hfta::engine {
namespace {

constexpr double kQuietSeconds = 1.5, kRedrawSeconds = 0.25, kLongestSilence = 60;
constexpr auto kLook = std::chrono::milliseconds(250);

bool can_redraw() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" && *term != '\0';
}

int columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void write(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

ProgressView::ProgressView(const Clock& clock, const std::deque<Activity>& activities)
    : clock_(clock),
      activities_(activities),
      terminal_(can_redraw()),
      began_(clock.seconds()),
      spoke_at_(began_),
      silence_(kQuietSeconds),
      thread_(start_thread([this] { watch(); })) {}

ProgressView::~ProgressView() {
  clear();
  thread_.join();
}

void ProgressView::take(const Event& event) {
  if (const auto* status = std::get_if<Status>(&event)) round(*status);
  if (const auto* told = std::get_if<Note>(&event)) note(told->text);
}

void ProgressView::round(const Status& status) {
  const std::lock_guard guard(mutex_);
  if (!terminal_) {
    write(status_line(status) + "\n");
    spoke_at_ = clock_.seconds();
    return;
  }
  last_ = status;
  const double now = clock_.seconds();
  if (now - began_ < kQuietSeconds || (drawn_at_ && now - *drawn_at_ < kRedrawSeconds)) return;
  draw();
}

void ProgressView::note(const std::string& line) {
  const std::lock_guard guard(mutex_);
  erase();
  tell(line);
}

void ProgressView::clear() {
  const std::lock_guard guard(mutex_);
  erase();
  leaving_ = true;
  changed_.notify_all();
}

void ProgressView::watch() {
  std::unique_lock guard(mutex_);
  while (!changed_.wait_for(guard, kLook, [this] { return leaving_; })) tell_activities();
}

void ProgressView::tell_activities() {
  const double now = clock_.seconds();
  if (terminal_) {
    if (now - began_ >= kQuietSeconds && (!drawn_at_ || now - *drawn_at_ >= 1)) draw();
    return;
  }
  if (now - spoke_at_ < silence_) return;
  const std::vector<std::string> lines = activity_lines(std::min(kQuietSeconds, silence_));
  if (lines.empty()) return;
  write(join(lines, "; ") + "\n");
  spoke_at_ = now;
  silence_ = std::min(2 * silence_, kLongestSilence);
}

std::vector<std::string> ProgressView::activity_lines(double least_seconds) const {
  std::vector<std::string> lines;
  for (const Activity& activity : activities_) {
    if (const auto text = activity.text(least_seconds)) lines.push_back(printable(*text));
  }
  return lines;
}

void ProgressView::draw() {
  drawn_at_ = clock_.seconds();
  std::vector<std::string> lines;
  if (last_) lines = status_lines(*last_, columns() - 1);
  const std::vector<std::string> now = activity_lines(kQuietSeconds);
  if (!now.empty()) lines.push_back(cut_line(join(now, "; "), columns() - 1));
  std::string text = lines_ > 0 ? fmt::format("\x1b[{}F", lines_) : "";
  for (const std::string& line : lines) text += line + "\x1b[K\n";
  write(text + "\x1b[J");
  lines_ = lines.size();
}

void ProgressView::erase() {
  if (lines_ > 0) write(fmt::format("\x1b[{}F\x1b[J", lines_));
  lines_ = 0;
}

}  // namespace hfta::engine
