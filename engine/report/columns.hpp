#pragma once
/// Text in columns.

#include <string>
#include <vector>

namespace hfta::engine {

/// Rows of cells under a header, two spaces between columns. Columns in which every cell is a number (or "-", or empty)
/// are aligned right, others left. Widths count characters, not bytes, of UTF-8 text. Each line ends with a newline.
[[nodiscard]] std::string in_columns(const std::vector<std::string>& header,
                                     const std::vector<std::vector<std::string>>& rows);

}  // namespace hfta::engine
