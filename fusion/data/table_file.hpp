#pragma once
/// Tables of text: CSV and TSV files, gzipped ones too. Internal to fusion/data.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusion/data/array_file.hpp"

namespace hfta::fusion {

/// How a table is written, by its file's name.
struct TableFormat {
  std::string_view suffix;  ///< ".csv", ".tsv", ".csv.gz", ".tsv.gz"
  char separator = ',';
  bool gzipped = false;
};

/// Whether a file of that name is a table.
[[nodiscard]] bool is_table(const std::filesystem::path& path);

/// The format that the file's name says; nullopt: no table. Capitals do not matter.
[[nodiscard]] std::optional<TableFormat> table_format(const std::filesystem::path& path);

/// One record of a CSV file.
struct CsvRecord {
  std::vector<std::string> fields;
  std::size_t line = 1;  ///< Line where it begins, from 1.
};

/// RFC 4180 as it is met: quoted fields may hold separators, doubled quotes and line ends; lines end in LF, CR LF or
/// CR; blank lines and a byte-order mark are skipped. Gives one record after another, so that a table is never held as
/// text cells.
class CsvReader {
 public:
  /// `text` must outlive the reader. Errors begin with `place`.
  CsvReader(std::string_view text, std::string place, char separator = ',');

  /// False at the end. Throws Error{kConfig} for quotes that are not closed or are followed by text.
  [[nodiscard]] bool next(CsvRecord& record);

 private:
  void read_field(CsvRecord& record);
  void read_quoted(std::string& field, std::size_t line);
  [[nodiscard]] bool take_line_end();

  std::string_view text_;
  std::string place_;
  char separator_;
  std::size_t line_ = 1;
};

/// The numbers of a CSV file: the wanted columns, row-major.
struct NumberTable {
  std::vector<std::string> columns;
  std::vector<double> features;  ///< [rows, columns.size()]
  std::vector<double> targets;   ///< [rows], or nothing
  std::int64_t rows = 0;
};

/// How the columns of a table are used.
struct TableColumns {
  std::string target;
  std::vector<std::string> features;  ///< Empty: every column but the target and `groups`.
  Use target_use = Use::kNumbers;     ///< kLabels: targets are whole numbers from 0; kNothing: there are none.
  Use feature_use = Use::kNumbers;    ///< kIntegers: features are whole numbers.
  std::int64_t ignored = -100;        ///< A label that may be below 0.
  std::string groups = {};            ///< A column that is no feature unless it is named as one; "": none.
};

/// Reads a table whose first record is its header; `path` has a table_format().
/// Throws Error{kConfig}: missing or repeated columns (nearest named), ragged rows, fields that are no finite numbers
/// (line and column named), no rows.
[[nodiscard]] NumberTable read_table(const std::filesystem::path& path, const TableColumns& wanted,
                                     const std::string& place);

}  // namespace hfta::fusion
