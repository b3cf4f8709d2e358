#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/number_text.hpp"
#include "base/text.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/gzip.hpp"
#include "fusion/data/table_file.hpp"

namespace hfta::fusion {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::size_t column_index(const std::vector<std::string>& header, const std::string& name, const std::string& place) {
  constexpr std::string_view kHint = "; columns are separated by commas in a .csv, by tabs in a .tsv";
  const auto found = std::find(header.begin(), header.end(), name);
  if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
  const bool single = header.size() == 1 && header[0].find_first_of(",;\t") != std::string::npos;
  fail_at(place, fmt::format("found no column '{}'{}", printable(name),
                             single ? std::string(kHint) : printable(suggestion(name, header))));
}

std::vector<std::string> read_header(CsvReader& reader, const std::string& place) {
  CsvRecord record;
  if (!reader.next(record)) fail_at(place, "found an empty file, wanted a header row and rows of numbers");
  std::vector<std::string> header;
  std::set<std::string> seen;
  for (const std::string& field : record.fields) {
    header.emplace_back(trimmed(field));
    if (!seen.insert(header.back()).second) {
      fail_at(place, fmt::format("found the column '{}' twice", excerpt(header.back())));
    }
  }
  return header;
}

const char* wanted_text(Use use) {
  switch (use) {
    case Use::kNumbers:
      return "a number";
    case Use::kLabels:
      return "a class as a whole number from 0";
    case Use::kIntegers:
      return "a whole number, as for an integer input of the model or folds.groups";
    case Use::kNothing:
      break;
  }
  return "";
}

// std::from_chars rejects a number that is too small for a double as it rejects one that is too large. It is zero.
std::optional<double> parse_double(std::string_view text) {
  if (const auto value = parse_number<double>(text)) return value;
  const auto wide = parse_number<long double>(text);
  return wide && std::abs(*wide) < 1 ? std::optional(static_cast<double>(*wide)) : std::nullopt;
}

double number(const CsvRecord& record, const std::vector<std::string>& header, std::size_t column, Use use,
              std::int64_t ignored, const std::string& place) {
  std::string_view text = trimmed(record.fields[column]);
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto parsed = parse_double(text);
  const double value = parsed.value_or(0);
  const bool read = parsed && std::isfinite(value);
  // Beyond 2^53 a double no longer tells whole numbers apart.
  const bool whole = std::floor(value) == value && std::abs(value) <= 0x1.0p53;
  if (!read || (use != Use::kNumbers && !whole) ||
      (use == Use::kLabels && value < 0 && value != static_cast<double>(ignored))) {
    fail_at(place, fmt::format("line {}: column '{}': found '{}', wanted {}", record.line, excerpt(header[column]),
                               excerpt(record.fields[column]), wanted_text(use)));
  }
  return value;
}

// Columns of the features, in the order asked for, or in the file's order.
std::vector<std::size_t> feature_columns(const std::vector<std::string>& header, std::size_t target,
                                         const std::vector<std::string>& features, const std::string& groups,
                                         const std::string& place) {
  std::vector<std::size_t> columns;
  for (const std::string& name : features) {
    const std::size_t column = column_index(header, name, place);
    if (column == target) fail_at(place, fmt::format("found the target '{}' among the features", printable(name)));
    if (std::count(columns.begin(), columns.end(), column) > 0) {
      fail_at(place, fmt::format("found the feature '{}' twice", printable(name)));
    }
    columns.push_back(column);
  }
  for (std::size_t c = 0; features.empty() && c < header.size(); ++c) {
    if (c != target && (groups.empty() || header[c] != groups)) columns.push_back(c);
  }
  if (columns.empty())
    fail_at(place, target < header.size() ? "found no columns beside the target" : "found no columns");
  return columns;
}

constexpr TableFormat kFormats[] = {
    {".csv", ',', false}, {".tsv", '\t', false}, {".csv.gz", ',', true}, {".tsv.gz", '\t', true}};

}  // namespace

std::optional<TableFormat> table_format(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  for (const TableFormat& format : kFormats) {
    if (name.ends_with(format.suffix)) return format;
  }
  return std::nullopt;
}

bool is_table(const std::filesystem::path& path) { return table_format(path).has_value(); }

NumberTable read_table(const std::filesystem::path& path, const TableColumns& wanted, const std::string& place) {
  const TableFormat format = table_format(path).value_or(TableFormat{});
  std::vector<std::byte> bytes = read_bytes(path, place);
  if (format.gzipped) bytes = inflate_gzip(bytes, place);
  CsvReader reader({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, place, format.separator);
  const std::vector<std::string> header = read_header(reader, place);
  const bool labelled = wanted.target_use != Use::kNothing;
  const std::size_t target_column = labelled ? column_index(header, wanted.target, place) : header.size();
  const std::vector<std::size_t> columns =
      feature_columns(header, target_column, wanted.features, wanted.groups, place);

  NumberTable table;
  for (const std::size_t column : columns) table.columns.push_back(header[column]);
  CsvRecord record;
  while (reader.next(record)) {
    if (record.fields.size() != header.size()) {
      fail_at(place, fmt::format("line {}: found {} fields, wanted {} as in the header", record.line,
                                 record.fields.size(), header.size()));
    }
    for (const std::size_t column : columns)
      table.features.push_back(number(record, header, column, wanted.feature_use, wanted.ignored, place));
    ++table.rows;
    if (!labelled) continue;
    table.targets.push_back(number(record, header, target_column, wanted.target_use, wanted.ignored, place));
  }
  if (table.rows == 0) fail_at(place, "found a header and no rows, wanted samples");
  return table;
}

}  // namespace hfta::fusion
