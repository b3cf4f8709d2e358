// A timeline as a picture.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "base/text.hpp"
#include "engine/report/timeline.hpp"
#include "engine/report/words.hpp"

namespace hfta::engine {
namespace {

constexpr int kColumns = 900, kLeft = 20, kTop = 64, kRow = 78, kBar = 34;
constexpr std::size_t kMostRows = 64;

struct Kind {
  const char* name;
  const char* colour;
  double DeviceTime::*seconds;
};
// Kinds from below to above in a column, in colours that the colour-blind can tell apart (Okabe and Ito).
constexpr std::array<Kind, 4> kKinds = {{{"busy slots", "#0072b2", &DeviceTime::busy},
                                         {"empty slots", "#e69f00", &DeviceTime::empty},
                                         {"slots given up", "#f0e442", &DeviceTime::narrowed},
                                         {"no round", "#eeeeee", &DeviceTime::outside}}};

/// The part of a column's time of each kind, without the last one.
using Column = std::array<double, 3>;

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : excerpt(text)) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::vector<Column> columns_of(const DeviceTime& device, double seconds) {
  std::vector<Column> columns(kColumns, Column{});
  const double width = seconds / kColumns;
  for (const TimedRound& round : device.rounds) {
    const Column shares = {static_cast<double>(round.occupied) / round.offered,
                           static_cast<double>(round.width - round.occupied) / round.offered,
                           static_cast<double>(round.offered - round.width) / round.offered};
    const int first = std::clamp(static_cast<int>(round.begin / width), 0, kColumns - 1);
    const int last = std::clamp(static_cast<int>(round.end / width), first, kColumns - 1);
    for (int c = first; c <= last; ++c) {
      const double inside = std::min(round.end, (c + 1) * width) - std::max(round.begin, c * width);
      for (std::size_t k = 0; k < shares.size(); ++k) {
        columns[static_cast<std::size_t>(c)][k] += std::max(0.0, inside) / width * shares[k];
      }
    }
  }
  return columns;
}

std::string rectangle(double x, double y, double width, double height, const char* colour) {
  return fmt::format("<rect x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.1f}\" fill=\"{}\"/>\n", x, y, width,
                     height, colour);
}

bool alike(const Column& a, const Column& b) {
  constexpr double kInvisible = 0.01;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (std::abs(a[k] - b[k]) > kInvisible) return false;
  }
  return true;
}

std::string bar(const DeviceTime& device, double seconds, double top) {
  std::string text = rectangle(kLeft, top, kColumns, kBar, kKinds.back().colour);
  const std::vector<Column> columns = columns_of(device, seconds);
  for (std::size_t from = 0; from < columns.size();) {
    std::size_t to = from + 1;
    while (to < columns.size() && alike(columns[from], columns[to])) ++to;
    double below = top + kBar;
    for (std::size_t k = 0; k < columns[from].size(); ++k) {
      const double height = kBar * columns[from][k];
      if (height < 0.05) continue;
      below -= height;
      text +=
          rectangle(kLeft + static_cast<double>(from), below, static_cast<double>(to - from), height, kKinds[k].colour);
    }
    from = to;
  }
  return text;
}

std::string label(double x, double y, const std::string& text, const char* anchor = "start") {
  return fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, text);
}

std::string legend() {
  std::string text;
  double x = kLeft;
  for (const Kind& kind : kKinds) {
    text += rectangle(x, 36, 12, 12, kind.colour) + label(x + 17, 46, kind.name);
    x += 140;
  }
  return text;
}

std::string row(const DeviceTime& device, double seconds, double top) {
  std::string text = label(kLeft, top + 14, escaped(device.device));
  std::string shares;
  for (const Kind& kind : kKinds) {
    shares +=
        fmt::format("{}{} {:.1f} %", shares.empty() ? "" : ",  ", kind.name, 100 * (device.*kind.seconds) / seconds);
  }
  return text + label(kLeft + kColumns, top + 14, shares, "end") + bar(device, seconds, top + 20);
}

}  // namespace

std::string timeline_svg(const Timeline& timeline, const std::string& study) {
  const std::size_t rows = std::min(timeline.devices.size(), kMostRows);
  const double height = kTop + static_cast<double>(rows) * kRow + 40;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" viewBox=\"0 0 {0} {1:.0f}\""
      " font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      kColumns + 2 * kLeft, height);
  text += label(kLeft, 22, fmt::format("{}: where the time of its devices went", escaped(study))) + legend();
  for (std::size_t i = 0; i < rows; ++i) {
    text += row(timeline.devices[i], timeline.seconds, kTop + static_cast<double>(i) * kRow);
  }
  const double end = height - 20;
  text += label(kLeft, end, "0") + label(kLeft + kColumns, end, duration_text(timeline.seconds), "end");
  if (rows < timeline.devices.size()) {
    text += label(kLeft + kColumns / 2.0, end, fmt::format("and {} more devices", timeline.devices.size() - rows),
                  "middle");
  }
  return text + "</svg>\n";
}

}  // namespace hfta::engine
