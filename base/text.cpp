#include "base/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
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

constexpr char32_t kInvalid = 0xFFFFFFFF;

struct Character {
  char32_t code = kInvalid;
  std::size_t bytes = 1;
};

// Decodes UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing beyond U+10FFFF.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  char32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fU);
  }
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

struct CodeRange {
  char32_t first, last;
};

// Characters that a terminal obeys or does not show: they may hide or reverse the text beside them.
constexpr CodeRange kObeyed[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},         // C0, DEL, C1
    {0xad, 0xad},       {0x61c, 0x61c},       // soft hyphen, Arabic letter mark
    {0x180e, 0x180e},   {0x200b, 0x200f},     // zero-width spaces and joiners, direction marks
    {0x2028, 0x202e},   {0x2060, 0x206f},     // separators, embeddings, overrides, isolates
    {0xfeff, 0xfeff},   {0xfff9, 0xfffb},     // byte-order mark, annotations
    {0xe0000, 0xe007f}, {kInvalid, kInvalid}  // tags; bytes that are no UTF-8
};

bool is_obeyed(char32_t code) {
  return std::any_of(std::begin(kObeyed), std::end(kObeyed),
                     [code](const CodeRange& range) { return code >= range.first && code <= range.last; });
}

// Checks ASCII and its full-width forms, which some spreadsheets take for the same.
bool begins_formula(char32_t code) {
  constexpr std::u32string_view kStarts = U"=+-@\uff1d\uff0b\uff0d\uff20";
  return kStarts.find(code) != std::u32string_view::npos;
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error != std::errc::invalid_argument && end == text.data() + text.size();
}

// Changes ASCII letters alone.
std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const auto same = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const std::string& one) { return lower_case(one) == lower_case(word); });
  if (same != candidates.end()) return *same;
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
  if (!near.empty()) return "; did you mean '" + excerpt(near) + "'?";
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
  while (!text.empty()) {
    const Character next = first_character(text);
    for (const char c : text.substr(0, next.bytes)) {
      const auto byte = static_cast<unsigned char>(c);
      if (is_obeyed(next.code)) {
        out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
      } else {
        out += c;
      }
    }
    text.remove_prefix(next.bytes);
  }
  return out;
}

std::string excerpt(std::string_view text, std::size_t most) {
  if (text.size() <= most) return printable(text);
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;  // not within a character
  return printable(text.substr(0, most)) + "... (" + std::to_string(text.size()) + " bytes)";
}

std::string spreadsheet_cell(std::string_view text) {
  std::string shown = printable(text);
  if (shown.empty() || !begins_formula(first_character(shown).code) || is_number(shown)) return shown;
  return "'" + shown;
}

}  // namespace hfta
