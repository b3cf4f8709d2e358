#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fusion/data/file_bytes.hpp"
#include "fusion/data/table_file.hpp"

namespace hfta::fusion {
namespace {

// A column takes a hundred bytes of its own, a character of an empty one in the file: no wider table is made by hand.
constexpr std::size_t kMostColumns = 1'000'000;

}  // namespace

CsvReader::CsvReader(std::string_view text, std::string place, char separator)
    : text_(text), place_(std::move(place)), separator_(separator) {
  // UTF-16 and UTF-32 begin with these marks.
  if (text_.starts_with("\xFF\xFE") || text_.starts_with("\xFE\xFF") || text_.starts_with({"\0\0\xFE\xFF", 4})) {
    fail_at(place_, "found text in UTF-16 or UTF-32, wanted UTF-8: frame.to_csv(path, encoding='utf-8')");
  }
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
}

bool CsvReader::take_line_end() {
  if (text_.empty() || (text_[0] != '\n' && text_[0] != '\r')) return false;
  text_.remove_prefix(text_.starts_with("\r\n") ? 2 : 1);
  ++line_;
  return true;
}

bool CsvReader::next(CsvRecord& record) {
  while (take_line_end()) {
  }
  record.fields.clear();
  record.line = line_;
  if (text_.empty()) return false;
  read_field(record);
  while (!text_.empty() && text_[0] == separator_) {
    if (record.fields.size() == kMostColumns) {
      fail_at(place_, fmt::format("line {}: found more than {} columns", record.line, kMostColumns));
    }
    text_.remove_prefix(1);
    read_field(record);
  }
  (void)take_line_end();
  return true;
}

void CsvReader::read_field(CsvRecord& record) {
  std::string& field = record.fields.emplace_back();
  if (!text_.empty() && text_[0] == '"') {
    read_quoted(field, record.line);
    return;
  }
  const char ends[] = {separator_, '\r', '\n'};
  const std::size_t end = std::min(text_.find_first_of(std::string_view(ends, sizeof ends)), text_.size());
  field.assign(text_.substr(0, end));
  text_.remove_prefix(end);
}

void CsvReader::read_quoted(std::string& field, std::size_t line) {
  text_.remove_prefix(1);
  while (true) {
    const std::size_t quote = text_.find('"');
    if (quote == std::string_view::npos) {
      fail_at(place_, fmt::format("line {}: found a quote that is never closed", line));
    }
    const std::string_view part = text_.substr(0, quote);
    line_ += static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n'));
    field.append(part);
    text_.remove_prefix(quote + 1);
    if (!text_.starts_with('"')) break;
    field += '"';
    text_.remove_prefix(1);
  }
  if (!text_.empty() && text_[0] != separator_ && text_[0] != '\r' && text_[0] != '\n') {
    fail_at(place_, fmt::format("line {}: found text behind a closing quote, wanted a {} or the line's end", line_,
                                separator_ == '\t' ? "tab" : "comma"));
  }
}

}  // namespace hfta::fusion
