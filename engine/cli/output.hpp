#pragma once
/// The program's own words, on the two streams.

#include <filesystem>
#include <string>
#include <string_view>

namespace hfta::engine {

/// Writes results to standard output. A reader that has left (`| head`) is no error; any other failure is an
/// Error{kStorage}.
void print(std::string_view text);

/// Writes results to a file, atomically, or to standard output if `file` is "".
void print_to(const std::filesystem::path& file, std::string_view text);

/// One line to standard error: "hfta-tune: <line>". Line breaks and control characters inside are disarmed.
void tell(std::string_view line);

}  // namespace hfta::engine
