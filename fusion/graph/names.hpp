#pragma once
/// Patterns over names.

#include <string>
#include <string_view>
#include <vector>

namespace hfta::fusion {

/// Node::path of the calls that an exported model makes itself, in no module of it.
inline constexpr const char* kModelPath = "(model)";

/// Whether the whole `text` fits; `*` matches anything, dots included.
[[nodiscard]] bool matches(std::string_view pattern, std::string_view text);
/// Whether a pattern means a parameter: its name fits, or that of a module that it is in.
[[nodiscard]] bool names_parameter(const std::string& pattern, const std::string& name);
/// The names and the modules that they are in: what a pattern of parameters may have been meant for.
[[nodiscard]] std::vector<std::string> with_modules(const std::vector<std::string>& names);
/// "; did you mean 'x'?", or "; there are for example a, b, c".
[[nodiscard]] std::string hint(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace hfta::fusion
