#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.hpp"
#include "engine/config/yaml.hpp"

namespace hfta::engine::configuration {
namespace {

[[noreturn]] void refuse(std::string_view text, std::size_t at, const std::string& file, const std::string& message) {
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  throw Error(ErrorKind::kConfig, fmt::format("{}:{}: {}", file, line, message));
}

// Length of the well-formed UTF-8 sequence at `at` (Unicode 15, table 3-7); 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0;
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return continues(1) && continues(2) && continues(3) && !overlong && !beyond ? 4 : 0;
  }
  return 0;
}

void check_characters(std::string_view text, const std::string& file) {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool line_end = byte == '\n' || (byte == '\r' && i + 1 < text.size() && text[i + 1] == '\n');
    if ((byte < 0x20 && byte != '\t' && !line_end) || byte == 0x7F) {
      refuse(text, i, file, fmt::format("found the control character 0x{:02x}, wanted text", byte));
    }
    const std::size_t length = utf8_length(text, i);
    if (length == 0) refuse(text, i, file, fmt::format("found the byte 0x{:02x}, wanted UTF-8 text", byte));
    i += length;
  }
}

// The position past the closing quote; the text's end if there is none.
std::size_t skip_quoted(std::string_view text, std::size_t at) {
  const char quote = text[at];
  for (++at; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (text[at] == quote) {
      if (quote == '"' || at + 1 >= text.size() || text[at + 1] != quote) return at + 1;
      ++at;  // '' is a quote within
    }
  }
  return text.size();
}

// Counts open brackets much as a YAML scanner would. Where the two disagree (text within block scalars) the tree
// builder's own count of depth decides; this one only bounds what the parser is given to queue.
void check_brackets(std::string_view text, const std::string& file) {
  int depth = 0;
  bool fresh = true;  // a value may begin here
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const char before = i == 0 ? '\n' : text[i - 1];
    const char after = i + 1 < text.size() ? text[i + 1] : '\n';
    const bool blank_after = after == ' ' || after == '\t' || after == '\n' || after == '\r';
    if (c == '#' && (before == ' ' || before == '\t' || before == '\n')) {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (fresh && (c == '"' || c == '\'')) {
      i = skip_quoted(text, i);
      fresh = false;
      continue;
    }
    if (c == '\n') {
      fresh = true;
    } else if ((c == '[' || c == '{') && (fresh || depth > 0)) {
      fresh = true;
      if (++depth > kMostDepth) {
        refuse(text, i, file,
               fmt::format("found brackets nested deeper than {}, wanted at most {}", kMostDepth, kMostDepth));
      }
    } else if (c == ']' || c == '}') {
      depth = std::max(depth - 1, 0);
      fresh = false;
    } else if (c != ' ' && c != '\t') {
      const bool indicator =
          ((c == '-' || c == '?' || c == ':') && blank_after) || (depth > 0 && (c == ',' || c == ':'));
      fresh = indicator;
    }
    ++i;
  }
}

}  // namespace

void check_text(std::string_view text, const std::string& file) {
  if (text.size() > kMostBytes) {
    refuse(text, 0, file, fmt::format("found {} bytes, wanted at most {}", text.size(), kMostBytes));
  }
  check_characters(text, file);
  check_brackets(text, file);
}

}  // namespace hfta::engine::configuration
