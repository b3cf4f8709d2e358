// Data in the format of MNIST: two zero bytes, a type, the number of dimensions, each as four bytes, then the numbers;
// all big-endian. https://yann.lecun.com/exdb/mnist, "The IDX file format".

#include "fusion/data/idx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/gzip.hpp"
#include "fusion/data/readers.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

struct Type {
  unsigned code;
  NumberType type;
};
constexpr Type kTypes[] = {{0x08, {'u', 1}}, {0x09, {'i', 1}}, {0x0B, {'i', 2}},
                           {0x0C, {'i', 4}}, {0x0D, {'f', 4}}, {0x0E, {'f', 8}}};

// "train-images-idx3-ubyte", "labels.idx", each also with .gz.
bool is_idx(const fs::path& path) {
  std::string name = lower_name(path);
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  const std::size_t at = name.rfind("idx");
  return at != std::string::npos && at > 0 && (name[at - 1] == '.' || name[at - 1] == '-');
}

StoredArray read_file(const fs::path& path, Use use, const DataFiles& files, const std::string& place) {
  const std::string here = place + ": " + printable(path.filename().string());
  if (lower_extension(path) != ".gz") return parse_idx(files.open(path, place), use, here);
  return parse_idx(std::make_shared<MemorySource>(inflate_gzip(read_bytes(path, place), here)), use, here);
}

FileData read_pair(const fs::path& path, const DataSource& source, const Uses& uses, const DataFiles& files,
                   const std::string& place) {
  return from_pair(path, source, uses, place,
                   [&](const std::string& name, Use use) { return read_file(name, use, files, place); });
}

}  // namespace

StoredArray parse_idx(std::shared_ptr<const ByteSource> file, Use use, const std::string& place) {
  constexpr std::uint64_t kMostHeader = 4 + 4 * 255;
  const std::vector<std::byte> bytes = first_bytes(*file, kMostHeader);
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0) fail_at(place, "found no IDX header, wanted two zero bytes");
  const auto* const type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& known) { return known.code == byte(2); });
  if (type == std::end(kTypes)) {
    fail_at(place, fmt::format("found type {:#04x} in the header, wanted one of IDX's: 0x08 to 0x0e", byte(2)));
  }
  const std::size_t header = 4 + 4 * std::size_t{byte(3)};
  if (bytes.size() < header) fail_at(place, fmt::format("found {} bytes, wanted a header of {}", bytes.size(), header));
  NumberLayout layout{type->type, /*big_endian=*/true, false, {}, 1};
  const std::uint64_t found = file->size() - header;
  const std::uint64_t most = found / type->type.width;
  for (std::size_t at = 4; at < header; at += 4) {
    const std::uint32_t extent = byte(at) << 24 | byte(at + 1) << 16 | byte(at + 2) << 8 | byte(at + 3);
    layout.shape.push_back(extent);
    // The numbers have to be in the file: more than it has bytes is refused before it can overflow.
    if (extent != 0 && layout.elements > most / extent) {
      fail_at(place, fmt::format("found {} bytes of numbers, wanted more for a shape that begins {}", found,
                                 to_text(layout.shape)));
    }
    layout.elements *= extent;
  }
  const std::uint64_t wanted = layout.elements * type->type.width;
  if (wanted != found) {
    fail_at(place,
            fmt::format("found {} bytes of numbers, wanted {} for shape {}", found, wanted, to_text(layout.shape)));
  }
  return read_numbers(layout, std::move(file), header, use, place);
}

const DataReader kIdxPair = {"an IDX file (MNIST's; also with .gz)", DataKeys::kPair, is_idx, read_pair};

}  // namespace hfta::fusion
