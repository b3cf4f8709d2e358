#pragma once
/// Paths of the program and its data on this machine.

#include <filesystem>

namespace hfta::engine {

/// The running program, and its folder; links followed.
[[nodiscard]] std::filesystem::path program_file();
[[nodiscard]] std::filesystem::path program_folder();

/// Folder of the built-in data: `../share/hfta-tune/data` of an install tree, or `data` of the clone that the program
/// was built in. Throws Error{kConfig} if neither is there.
[[nodiscard]] std::filesystem::path data_root();

/// Where measured choices are remembered: $HFTA_CACHE, else ~/.cache/hfta-tune; "" where HFTA_CACHE is set but empty,
/// or there is no home.
[[nodiscard]] std::filesystem::path cache_folder();

}  // namespace hfta::engine
