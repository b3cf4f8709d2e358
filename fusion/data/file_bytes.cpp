#include "fusion/data/file_bytes.hpp"

#include <fstream>
#include <system_error>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::fusion {

void fail_at(const std::string& place, const std::string& message) {
  throw Error(ErrorKind::kConfig, place + (place.empty() ? "" : ": ") + message);
}

std::vector<std::byte> read_bytes(const std::filesystem::path& path, const std::string& place) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) fail_at(place, "found no file '" + printable(path.string()) + "'");
  if (!std::filesystem::is_regular_file(status))
    fail_at(place, "found '" + printable(path.string()) + "', wanted a file");
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  std::vector<std::byte> bytes(error ? 0 : size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (error || !in) fail_at(place, "cannot read '" + printable(path.string()) + "'");
  return bytes;
}

}  // namespace hfta::fusion
