#include "fusion/pt2/archive.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::fusion::pt2 {
namespace {

// An archive of a few bytes a member holds no model.
constexpr zip_int64_t kMostMembers = 1'000'000;

// libzip's errors own memory until they are ended.
class ZipError {
 public:
  ZipError() { zip_error_init(&error_); }
  ~ZipError() { zip_error_fini(&error_); }
  ZipError(const ZipError&) = delete;
  ZipError& operator=(const ZipError&) = delete;
  zip_error_t* get() { return &error_; }
  std::string text() { return zip_error_strerror(&error_); }

 private:
  zip_error_t error_{};
};

[[noreturn]] void not_an_archive(const std::string& name, const std::string& reason) {
  fail(name, fmt::format("cannot read it as a .pt2 archive: {}; wanted what torch.export.save writes", reason));
}

bool leaves_its_folder(const std::string& name) {
  if (name.starts_with('/') || name.find('\\') != std::string::npos) return true;
  return ("/" + name + "/").find("/../") != std::string::npos;
}

}  // namespace

void fail(const std::string& place, const std::string& what) {
  throw Error(ErrorKind::kConfig, printable(place + ": " + what));
}

Archive Archive::open(const std::filesystem::path& file) {
  std::error_code error;
  const std::string name = file.string();
  if (!std::filesystem::exists(file, error)) fail(name, "no such file");
  if (!std::filesystem::is_regular_file(file, error)) fail(name, "found no regular file, wanted a .pt2 archive");
  const std::uint64_t size = std::filesystem::file_size(file, error);
  if (error) fail(name, "cannot read it: " + error.message());
  ZipError reason;
  zip_source_t* source = zip_source_file_create(file.c_str(), 0, -1, reason.get());
  if (source == nullptr) fail(name, "cannot read it: " + reason.text());
  Zip zip(zip_open_from_source(source, ZIP_RDONLY, reason.get()));
  if (zip == nullptr) {
    zip_source_free(source);
    not_an_archive(name, reason.text());
  }
  return {std::move(zip), name, size};
}

Archive Archive::view(std::span<const std::byte> bytes, const std::string& name) {
  ZipError reason;
  zip_source_t* source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, reason.get());
  if (source == nullptr) not_an_archive(name, reason.text());
  Zip zip(zip_open_from_source(source, ZIP_RDONLY, reason.get()));
  if (zip == nullptr) {
    zip_source_free(source);
    not_an_archive(name, reason.text());
  }
  return {std::move(zip), name, bytes.size()};
}

Archive::Archive(Zip zip, std::string name, std::uint64_t size)
    : zip_(std::move(zip)), name_(std::move(name)), size_(size) {
  const zip_int64_t count = zip_get_num_entries(zip_.get(), 0);
  if (count <= 0) not_an_archive(name_, "it has no members");
  if (count > kMostMembers) not_an_archive(name_, fmt::format("it claims {} members", count));
  // torch writes everything below one folder, named after the file that was saved.
  const char* const first = zip_get_name(zip_.get(), 0, ZIP_FL_ENC_RAW);
  const std::string text = first != nullptr ? first : "";
  const std::string root = text.substr(0, text.find('/') == std::string::npos ? 0 : text.find('/') + 1);
  for (zip_int64_t i = 0; i < count; ++i) add_member(static_cast<std::uint64_t>(i), root);
}

void Archive::add_member(std::uint64_t index, const std::string& root) {
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  zip_stat_t stat;
  zip_stat_init(&stat);
  const bool known = zip_stat_index(zip_.get(), index, ZIP_FL_ENC_RAW, &stat) == 0 && (stat.valid & kNeeded) == kNeeded;
  if (!known) fail(name_, fmt::format("found a damaged directory: member {} is not described", index));
  const std::string full = stat.name;
  if (leaves_its_folder(full)) fail(name_, fmt::format("found a member '{}', wanted names within the archive", full));
  if (!full.starts_with(root) || full.ends_with('/')) return;
  const std::string place = fmt::format("{}: {}", name_, full);
  const bool raw = stat.comp_method == ZIP_CM_STORE && stat.encryption_method == ZIP_EM_NONE;
  if (!raw) fail(place, "found a compressed member, wanted the archive as torch.export.save wrote it");
  if (stat.size > size_ || stat.size != stat.comp_size) {
    fail(place, fmt::format("found a member of {} bytes in an archive of {}", stat.size, size_));
  }
  const std::uint32_t checksum = (stat.valid & ZIP_STAT_CRC) != 0 ? stat.crc : 0;
  const bool added = members_.try_emplace(full.substr(root.size()), Member{index, stat.size, checksum}).second;
  if (!added) fail(place, "found two members of this name");
}

std::vector<std::string> Archive::members() const {
  std::vector<std::string> names;
  for (const auto& [name, member] : members_) names.push_back(name);
  return names;
}

const Archive::Member& Archive::member(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) fail(name_, fmt::format("found no member '{}': the archive is not complete", name));
  return found->second;
}

std::uint64_t Archive::size_of(const std::string& name) const { return member(name).size; }

std::uint32_t Archive::checksum_of(const std::string& name) const { return member(name).checksum; }

std::vector<std::byte> Archive::read(const std::string& name) const {
  const Member& wanted = member(name);
  return read_zip_member(zip_.get(), wanted.index, wanted.size, printable(fmt::format("{}: {}", name_, name)));
}

}  // namespace hfta::fusion::pt2
