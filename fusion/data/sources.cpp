#include "fusion/data/sources.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "base/folder.hpp"
#include "base/limits.hpp"
#include "base/stamp.hpp"
#include "base/text.hpp"
#include "fusion/data/file_bytes.hpp"

namespace hfta::fusion {
namespace {

// A file, read by position and not mapped: a mapped file that becomes shorter kills the process by SIGBUS, wherever it
// is touched; a read reports an error. The system's cache serves both alike.
class FileSource final : public ByteSource {
 public:
  FileSource(const std::filesystem::path& path, std::string place)
      : path_(path),
        place_(std::move(place)),
        file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // a pipe is not waited for
    struct stat status {};
    if (file_.get() < 0 || ::fstat(file_.get(), &status) != 0) {
      fail_at(place_, fmt::format("cannot read '{}': {}", printable(path.string()), std::strerror(errno)));
    }
    if (!S_ISREG(status.st_mode)) fail_at(place_, "found '" + printable(path.string()) + "', wanted a file");
    size_ = static_cast<std::uint64_t>(status.st_size);
    stamp_ = stamp_of(status);
  }

  [[nodiscard]] std::uint64_t size() const override { return size_; }

  void read(std::uint64_t at, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t count = ::pread(file_.get(), out.data(), out.size(), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        fail_at(place_, fmt::format("cannot read '{}': {}", printable(path_.string()), std::strerror(errno)));
      }
      if (count == 0) {
        fail_at(place_, fmt::format("found the end of '{}' at byte {}, wanted {} bytes as when it was opened",
                                    printable(path_.string()), at, size_));
      }
      at += static_cast<std::uint64_t>(count);
      out = out.subspan(static_cast<std::size_t>(count));
    }
  }

  void check_unchanged() const override {
    struct stat status {};
    if (::fstat(file_.get(), &status) == 0 && stamp_of(status) == stamp_) return;
    fail_at(place_, fmt::format("found '{}' changed while it is read, wanted it as when it was opened",
                                printable(path_.string())));
  }

 private:
  std::filesystem::path path_;
  std::string place_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  std::string stamp_;
};

}  // namespace

MemorySource::MemorySource(std::uint64_t size)
    : bytes_(static_cast<std::byte*>(::operator new (std::max<std::uint64_t>(size, 1), std::align_val_t{kAlignment}))),
      size_(size) {}

MemorySource::MemorySource(std::span<const std::byte> bytes) : MemorySource(bytes.size()) {
  std::copy(bytes.begin(), bytes.end(), bytes_.get());
}

void MemorySource::Free::operator()(std::byte* bytes) const { ::operator delete (bytes, std::align_val_t{kAlignment}); }

void MemorySource::read(std::uint64_t at, std::span<std::byte> out) const {
  std::copy_n(bytes_.get() + at, out.size(), out.begin());
}

JoinedSource::JoinedSource(std::vector<std::shared_ptr<const ByteSource>> parts) : parts_(std::move(parts)) {}

std::uint64_t JoinedSource::size() const {
  std::uint64_t size = 0;
  for (const auto& part : parts_) size += part->size();
  return size;
}

void JoinedSource::read(std::uint64_t at, std::span<std::byte> out) const {
  for (const auto& part : parts_) {
    if (out.empty()) return;
    if (at >= part->size()) {
      at -= part->size();
      continue;
    }
    const std::size_t here = std::min<std::uint64_t>(part->size() - at, out.size());
    part->read(at, out.first(here));
    out = out.subspan(here);
    at = 0;
  }
}

void JoinedSource::check_unchanged() const {
  for (const auto& part : parts_) part->check_unchanged();
}

DataFiles::DataFiles(std::uint64_t memory) {
  constexpr std::uint64_t kShare = 8;
  largest_ = (memory > 0 ? memory : usable_memory()) / kShare;
}

std::shared_ptr<const ByteSource> DataFiles::open(const std::filesystem::path& path, const std::string& place) const {
  return open_joined({path}, place);
}

std::shared_ptr<const ByteSource> DataFiles::open_joined(const std::vector<std::filesystem::path>& paths,
                                                         const std::string& place) const {
  std::vector<std::shared_ptr<const ByteSource>> parts;
  for (const std::filesystem::path& path : paths) {
    std::error_code error;
    if (!std::filesystem::exists(path, error)) fail_at(place, "found no file '" + printable(path.string()) + "'");
    parts.push_back(std::make_shared<FileSource>(path, place));
  }
  auto all = parts.size() == 1 ? parts.front() : std::make_shared<const JoinedSource>(std::move(parts));
  if (!loads(all->size())) return all;
  auto loaded = std::make_shared<MemorySource>(all->size());
  all->read(0, loaded->bytes());
  all->check_unchanged();
  return loaded;
}

std::vector<std::byte> first_bytes(const ByteSource& source, std::uint64_t most) {
  std::vector<std::byte> bytes(std::min(source.size(), most));
  source.read(0, bytes);
  return bytes;
}

}  // namespace hfta::fusion
