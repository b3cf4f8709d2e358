#include <fmt/format.h>

#include <utility>

#include "fusion/data/array_file.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/npy_header.hpp"
#include "fusion/data/sources.hpp"

namespace hfta::fusion {

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

}  // namespace hfta::fusion
