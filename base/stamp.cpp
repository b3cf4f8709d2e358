#include "base/stamp.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

namespace hfta {

std::string stamp_of(const struct stat& status) {
  return fmt::format("{}:{}:{}:{}.{}", status.st_dev, status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

std::string stamp_of(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? stamp_of(status) : "";
}

}  // namespace hfta
