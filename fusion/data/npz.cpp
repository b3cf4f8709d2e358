#include <fmt/format.h>

#include "base/text.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/zip_member.hpp"

namespace hfta::fusion {
namespace {

// Real data above the size seldom shrink to a hundredth; what claims to is more likely made to fill the memory.
constexpr std::uint64_t kBombSize = std::uint64_t{256} << 20;
constexpr std::uint64_t kBombRatio = 100;

Zip open_archive(const std::filesystem::path& path, const std::string& place) {
  int code = 0;
  Zip archive(zip_open(path.c_str(), ZIP_RDONLY, &code));
  if (archive != nullptr) return archive;
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  fail_at(place, "cannot read it as .npz: " + reason);
}

std::vector<std::string> array_names(zip_t* archive) {
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < zip_get_num_entries(archive, 0); ++i) {
    const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    const std::string text = name != nullptr ? name : "";
    if (text.ends_with(".npy")) names.push_back(text.substr(0, text.size() - 4));
  }
  return names;
}

// Directories of archives are only claims: nothing is allocated that the file's own size does not make likely.
std::size_t checked_size(const zip_stat_t& stat, std::uintmax_t file_size, const std::string& place) {
  if (stat.comp_size > file_size) {
    fail_at(place, fmt::format("found a member of {} bytes in a file of {}", stat.comp_size, file_size));
  }
  const bool bomb = stat.size > kBombSize && stat.size / kBombRatio > stat.comp_size;
  if (bomb) {
    fail_at(place,
            fmt::format("found {} bytes that claim to inflate to {}, wanted at most {} times as many; if they do, "
                        "save them with numpy.savez, uncompressed",
                        stat.comp_size, stat.size, kBombRatio));
  }
  return stat.size;
}

}  // namespace

StoredArray read_npz(const std::filesystem::path& path, const std::string& name, Use use, const std::string& place) {
  const auto archive = open_archive(path, place);
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(archive.get(), (name + ".npy").c_str(), 0, &stat) != 0) {
    fail_at(place, fmt::format("found no array '{}'{}", printable(name), suggestion(name, array_names(archive.get()))));
  }
  constexpr zip_uint64_t kNeeded = ZIP_STAT_INDEX | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
  if ((stat.valid & kNeeded) != kNeeded) fail_at(place, "found a member of unknown size");
  const std::string member_place = place + ": " + printable(name);
  const std::size_t size = checked_size(stat, std::filesystem::file_size(path), member_place);
  const std::vector<std::byte> bytes = read_zip_member(archive.get(), stat.index, size, member_place);
  return parse_npy(bytes, use, member_place);
}

}  // namespace hfta::fusion
