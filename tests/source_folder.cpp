#include "tests/source_folder.hpp"

namespace hfta::testing {

const std::filesystem::path& source_folder() {
  static const std::filesystem::path folder = HFTA_SOURCE_DIR;
  return folder;
}

}  // namespace hfta::testing
