#include "engine/cli/progress_view.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "engine/cli/output.hpp"

namespace hfta::engine {
namespace {

constexpr double kQuietSeconds = 2, kRedrawSeconds = 0.25;

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

ProgressView::ProgressView(const Clock& clock) : clock_(clock), terminal_(can_redraw()), began_(clock.seconds()) {}

ProgressView::~ProgressView() { clear(); }

void ProgressView::round(const Status& status) {
  if (!terminal_) {
    write(status_line(status) + "\n");
    return;
  }
  const double now = clock_.seconds();
  if (now - began_ < kQuietSeconds || (drawn_at_ && now - *drawn_at_ < kRedrawSeconds)) return;
  drawn_at_ = now;
  const std::vector<std::string> lines = status_lines(status, columns() - 1);
  std::string text = lines_ > 0 ? fmt::format("\x1b[{}F", lines_) : "";
  for (const std::string& line : lines) text += line + "\x1b[K\n";
  write(text + "\x1b[J");
  lines_ = lines.size();
}

void ProgressView::note(const std::string& line) {
  clear();
  tell(line);
}

void ProgressView::clear() {
  if (lines_ > 0) write(fmt::format("\x1b[{}F\x1b[J", lines_));
  lines_ = 0;
}

}  // namespace hfta::engine
