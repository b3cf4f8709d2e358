#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/npy_header.hpp"
#include "fusion/data/sources.hpp"

namespace hfta::fusion {

void fail_at(const std::string& place, const std::string& message) {
  throw Error(ErrorKind::kConfig, place + (place.empty() ? "" : ": ") + message);
}

StoredArray parse_npy(std::shared_ptr<const ByteSource> file, Use use, const std::string& place) {
  constexpr std::uint64_t kMostHeader = 1 << 20;  // NumPy's own are of a hundred bytes
  const NpyHeader header = parse_npy_header(first_bytes(*file, kMostHeader), place);
  const std::uint64_t wanted = header.elements * header.type.width;
  const std::uint64_t found = file->size() - header.size;
  if (found != wanted) {
    fail_at(place,
            fmt::format("found {} bytes of numbers, wanted {} for shape {}", found, wanted, to_text(header.shape)));
  }
  return read_numbers(header, std::move(file), header.size, use, place);
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
