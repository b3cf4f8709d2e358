#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "storage/sqlite/sqlite_store.hpp"

namespace hfta::storage {
namespace {

[[noreturn]] void refuse(const std::string& url, const std::string& wanted) {
  throw Error(ErrorKind::kConfig, fmt::format("storage: found '{}', wanted {}", excerpt(url), wanted));
}

}  // namespace

std::filesystem::path path_from_url(const std::string& url) {
  if (url.find('\0') != std::string::npos) refuse(url, kSqliteUrls);
  const std::size_t scheme_end = url.find("://");
  if (scheme_end == std::string::npos) {
    if (url.empty() || url == ":memory:" || url.rfind("sqlite:", 0) == 0) refuse(url, kSqliteUrls);
    return url;
  }
  // "sqlite+pysqlite" is how SQLAlchemy names one of its drivers for the same file.
  const std::string scheme = url.substr(0, scheme_end);
  if (scheme != "sqlite" && scheme.rfind("sqlite+", 0) != 0) {
    refuse(url, fmt::format("{} ({} stores are not supported)", kSqliteUrls, excerpt(scheme)));
  }
  const std::string rest = url.substr(scheme_end + 3);
  if (rest.empty() || rest.front() != '/') refuse(url, fmt::format("three slashes: sqlite:///{}", excerpt(rest)));
  const std::string path = rest.substr(1);
  if (path.empty() || path == ":memory:")
    refuse(url, std::string(kSqliteUrls) + " (a study in memory could not be resumed)");
  if (path.find('?') != std::string::npos || path.rfind("file:", 0) == 0) {
    refuse(url, std::string(kSqliteUrls) + ", without options after '?'");
  }
  return path;
}

}  // namespace hfta::storage
