#include "engine/cli/places.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "base/error.hpp"

namespace hfta::engine {

namespace fs = std::filesystem;

fs::path program_file() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) throw Error(ErrorKind::kInternal, "/proc/self/exe: cannot read: " + error.message());
  return program;
}

fs::path program_folder() { return program_file().parent_path(); }

fs::path data_root() {
  const fs::path installed = program_folder().parent_path() / "share/hfta-tune/data";
  // A clone may have been moved since it was built: its own place is tried before the one that was compiled in.
  const fs::path candidates[] = {installed, program_folder() / "../../../data", fs::path(HFTA_BUILT_IN) / "data"};
  std::error_code ignored;
  for (const fs::path& folder : candidates) {
    if (fs::exists(folder / "digits.csv", ignored)) return fs::weakly_canonical(folder, ignored);
  }
  throw Error(ErrorKind::kConfig, fmt::format("built-in data: found no folder {}, nor the one of the clone that this "
                                              "program was built in",
                                              installed.string()));
}

fs::path cache_folder() {
  if (const char* given = std::getenv("HFTA_CACHE")) return given;
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != '\0' ? fs::path(home) / ".cache/hfta-tune" : fs::path();
}

}  // namespace hfta::engine
