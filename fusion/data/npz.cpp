#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "base/limits.hpp"
#include "base/stamp.hpp"
#include "base/text.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/sources.hpp"
#include "fusion/data/zip_member.hpp"

namespace hfta::fusion {
namespace {

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

// A member that is not compressed, read where it lies. One thread reads at a time.
class StoredMember final : public ByteSource {
 public:
  StoredMember(Zip archive, const std::filesystem::path& path, std::uint64_t index, std::uint64_t size,
               std::string place)
      : archive_(std::move(archive)), path_(path), size_(size), place_(std::move(place)), stamp_(stamp_of(path)) {
    check_zip_member(archive_.get(), index, size, place_);
    member_ = open_zip_member(archive_.get(), index, place_);
  }

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  void read(std::uint64_t at, std::span<std::byte> out) const override {
    const std::lock_guard lock(mutex_);
    const bool sought = zip_fseek(member_.get(), static_cast<zip_int64_t>(at), SEEK_SET) == 0;
    if (sought && zip_fread(member_.get(), out.data(), out.size()) == std::ssize(out)) return;
    fail_at(place_, std::string("cannot read it: ") + zip_file_strerror(member_.get()));
  }
  void check_unchanged() const override {
    if (stamp_of(path_) == stamp_) return;
    fail_at(place_, "found its file changed while it is read, wanted it as when it was opened");
  }

 private:
  Zip archive_;
  std::filesystem::path path_;
  std::uint64_t size_;
  std::string place_, stamp_;
  mutable std::mutex mutex_;
  ZipMember member_;
};

}  // namespace

Allowance::Allowance(std::uint64_t file, std::uint64_t memory) : file_(file) {
  constexpr std::uint64_t kTimesFile = 100, kShareOfMemory = 8;
  if (memory == 0) memory = usable_memory();
  most_ = std::max(file * kTimesFile, memory / kShareOfMemory);
}

void Allowance::take(std::uint64_t bytes, const std::string& place) {
  if (bytes > most_ || taken_ > most_ - bytes) {
    fail_at(place,
            fmt::format("found {} bytes in a file of {} that has taken {} already, wanted at most {} in all (100 "
                        "times the file, or an eighth of this machine's memory); if they are meant, save them "
                        "with numpy.savez, uncompressed",
                        bytes, file_, taken_, most_));
  }
  taken_ += bytes;
}

StoredArray read_npz(const std::filesystem::path& path, const std::string& name, Use use, const DataFiles& files,
                     Allowance& allowance, const std::string& place) {
  Zip archive = open_archive(path, place);
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat(archive.get(), (name + ".npy").c_str(), 0, &stat) != 0) {
    fail_at(place, fmt::format("found no array '{}'{}", printable(name), suggestion(name, array_names(archive.get()))));
  }
  constexpr zip_uint64_t kNeeded = ZIP_STAT_INDEX | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if ((stat.valid & kNeeded) != kNeeded) fail_at(place, "found a member of unknown size");
  const std::string member_place = place + ": " + printable(name);
  // Directories of archives are only claims.
  if (const std::uintmax_t whole = std::filesystem::file_size(path); stat.comp_size > whole) {
    fail_at(member_place, fmt::format("found a member of {} bytes in a file of {}", stat.comp_size, whole));
  }
  if (stat.comp_method == ZIP_CM_STORE && !files.loads(stat.size)) {
    return parse_npy(std::make_shared<StoredMember>(std::move(archive), path, stat.index, stat.size, member_place), use,
                     member_place);
  }
  allowance.take(stat.size, member_place);
  const std::vector<std::byte> bytes = read_zip_member(archive.get(), stat.index, stat.size, member_place);
  return parse_npy(std::make_shared<MemorySource>(bytes), use, member_place);
}

}  // namespace hfta::fusion
