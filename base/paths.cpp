#include "base/paths.hpp"

#include <system_error>

namespace hfta {
namespace {

std::filesystem::path whole(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return (error ? path : absolute).lexically_normal();
}

}  // namespace

std::filesystem::path path_from(const std::filesystem::path& folder, const std::filesystem::path& file) {
  if (file.empty()) return file;
  const std::filesystem::path inside = whole(file).lexically_proximate(whole(folder));
  return !inside.empty() && *inside.begin() != ".." ? inside : whole(file);
}

}  // namespace hfta
