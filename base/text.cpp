#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace hfta {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = word.size() / 3 + 2;  // more edits than this is another word, not a typo
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size()),
                      shorter = std::min(word.size(), candidate.size());
    if (longer - shorter >= best_distance) continue;  // each character more is an edit
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return "; did you mean '" + near + "'?";
  constexpr std::size_t kMostListed = 40;
  std::vector<std::string> listed;
  for (const std::string& candidate : candidates) {
    if (listed.size() == kMostListed) break;
    listed.push_back(excerpt(candidate));
  }
  if (candidates.size() > listed.size()) {
    listed.push_back("and " + std::to_string(candidates.size() - listed.size()) + " more");
  }
  return listed.empty() ? std::string() : "; valid: " + join(listed);
}

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += separator;
    out += words[i];
  }
  return out;
}

std::string printable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  const auto escape = [&out](unsigned char byte) { out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]}; };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte < 0x20 || byte == 0x7f) {
      escape(byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {  // U+0080..U+009F in UTF-8: terminals obey these too
      escape(byte);
      escape(next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return printable(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;  // not within a character
  return printable(text.substr(0, most)) + "... (" + std::to_string(text.size()) + " bytes)";
}

}  // namespace hfta
