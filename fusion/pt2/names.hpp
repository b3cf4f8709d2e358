#pragma once
/// Patterns over names.

#include <string>
#include <string_view>
#include <vector>

namespace hfta::fusion::pt2 {

/// Whether the whole `text` fits; `*` matches anything, dots included.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);
/// "; did you mean 'x'?", or "; there are for example a, b, c".
[[nodiscard]] std::string hint(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace hfta::fusion::pt2
