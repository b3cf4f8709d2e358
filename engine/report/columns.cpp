#include "engine/report/columns.hpp"

#include <algorithm>
#include <cstdlib>

namespace hfta::engine {
namespace {

std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

bool is_number(const std::string& text) {
  if (text.empty() || text == "-") return true;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return *end == '\0' || std::string(end) == " s";
}

}  // namespace

std::string in_columns(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  std::vector<bool> right;
  for (std::size_t i = 0; i < header.size(); ++i) {
    std::size_t width = characters(header[i]);
    bool numbers = true;
    for (const auto& row : rows) {
      width = std::max(width, characters(row[i]));
      numbers = numbers && is_number(row[i]);
    }
    widths.push_back(width);
    right.push_back(numbers);
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string space(widths[i] - characters(cells[i]), ' ');
      text += (i > 0 ? "  " : "") + (right[i] ? space + cells[i] : cells[i] + space);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line(header);
  for (const auto& row : rows) line(row);
  return out;
}

}  // namespace hfta::engine
