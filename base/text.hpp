#pragma once
/// Small text helpers for messages.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hfta {

/// The candidate nearest to `word` by edit distance, or "" if none is near enough to be a likely typo.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// `; did you mean 'x'?` for the nearest candidate, else `; valid: a, b, c` (of many or
/// long ones, only as much as a line can hold).
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

/// The shortest decimal text that reads back as exactly `value`; "nan", "inf", "-inf" for the rest.
[[nodiscard]] std::string shortest(double value);

/// "a, b, c".
[[nodiscard]] std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");

/// Control characters (ASCII's and, in UTF-8, U+0080..U+009F) as \xNN, so that hostile names cannot move the cursor.
[[nodiscard]] std::string printable(std::string_view text);

/// The same, and of a text that is longer than `most` bytes only its beginning and how long it is: what a file says may
/// be as large as the file.
[[nodiscard]] std::string excerpt(std::string_view text, std::size_t most = 80);

}  // namespace hfta
