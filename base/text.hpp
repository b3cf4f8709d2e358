#pragma once
/// Small text helpers for messages.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hfta {

/// The candidate that is `word` but for capitals, else the nearest by edit distance; "" if none is near enough.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean 'x'?` for the nearest candidate, else `; valid: a, b, c` (of many or
/// long ones, only as much as a line can hold).
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// The shortest decimal text that reads back as exactly `value`; "nan", "inf", "-inf" for the rest.
[[nodiscard]] std::string shortest(double value);

/// "a, b, c".
[[nodiscard]] std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// Text from strangers as one line that a terminal shows and does not obey: control characters (ASCII's and
/// U+0080..U+009F), line separators, bidirectional overrides and other invisible characters, and bytes that are no
/// UTF-8 become \xNN, byte by byte. Everything that goes to a screen from outside passes through this. Idempotent.
[[nodiscard]] std::string printable(std::string_view text);

/// printable() of at most the first `most` bytes; a text that was cut ends with its length ("... (N bytes)"). Text from
/// a file may be as large as the file.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t most = 80);

/// printable() for a cell of a table that spreadsheets open: text that one would take for a formula gets an apostrophe
/// in front, which spreadsheets do not show. Text that is a number stays as it is.
[[nodiscard]] std::string spreadsheet_cell(std::string_view text);

}  // namespace hfta
