#include "base/temporary_folder.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "base/error.hpp"

namespace hfta {

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path memory = "/dev/shm";
  const bool in_memory = std::filesystem::is_directory(memory, ignored) && ::access(memory.c_str(), W_OK) == 0;
  std::string pattern = ((in_memory ? memory : std::filesystem::temp_directory_path()) / (name + "-XXXXXX")).string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw Error(ErrorKind::kStorage, pattern + ": cannot create a temporary folder: " + std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace hfta
