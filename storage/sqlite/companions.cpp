#include "storage/sqlite/companions.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <system_error>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"

namespace hfta::storage {
namespace {

namespace fs = std::filesystem;

// https://www.sqlite.org/fileformat.html, "The Rollback Journal"; all numbers are big-endian.
constexpr std::array<unsigned char, 8> kMagic = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
constexpr std::size_t kHeaderBytes = 28;
constexpr std::size_t kTailBytes = 16;  // a name's length, its checksum, the magic; the name stands before them

[[noreturn]] void refuse(const fs::path& file, const std::string& found) {
  throw Error(ErrorKind::kStorage, fmt::format("{}: {}; neither hfta-tune nor Optuna left it. If the store comes from "
                                               "somebody else, ask for a copy made with: sqlite3 FILE '.backup COPY'",
                                               printable(file.string()), found));
}

std::uint64_t number(std::span<const unsigned char> bytes) {
  std::uint64_t value = 0;
  for (const unsigned char byte : bytes.first(4)) value = value << 8 | byte;
  return value;
}

bool has_magic(std::span<const unsigned char> bytes) {
  return std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

void check_journal(const fs::path& path, int file, std::uint64_t bytes, std::uint64_t store_bytes) {
  std::array<unsigned char, kTailBytes> tail{};
  const bool has_tail = bytes >= kTailBytes &&
                        ::pread(file, tail.data(), tail.size(), static_cast<off_t>(bytes - kTailBytes)) == kTailBytes;
  if (has_tail && has_magic(std::span(tail).last(kMagic.size())) && number(tail) != 0) {
    refuse(path, "found a journal of several databases, wanted one of this store alone");
  }
  std::array<unsigned char, kHeaderBytes> header{};
  if (::pread(file, header.data(), header.size(), 0) != kHeaderBytes || !has_magic(header)) return;
  const std::uint64_t pages = number(std::span(header).subspan(16)), page_bytes = number(std::span(header).subspan(24));
  // The journal has all pages that a transaction cut off the store's end.
  if (page_bytes <= 65536 && pages * page_bytes > store_bytes + bytes) {
    refuse(path, fmt::format("found a journal that makes the store {} bytes long, wanted at most {}",
                             pages * page_bytes, store_bytes + bytes));
  }
}

}  // namespace

void check_companions(const fs::path& store) {
  std::error_code error;
  const fs::path real = fs::canonical(store, error);  // SQLite names journals after it
  if (error) return;
  for (const char* ending : {"-journal", "-wal", "-shm"}) {
    fs::path path = real;
    path += ending;
    struct stat status = {};
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (!S_ISREG(status.st_mode)) refuse(path, "found a link, folder or device, wanted a file");
    if (std::strcmp(ending, "-journal") != 0) continue;
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const std::uint64_t store_bytes = fs::file_size(real, error);
    // The journal is gone again, or cannot be read: a living program removed it, or SQLite reports the reason next.
    if (file.get() < 0 || error || ::fstat(file.get(), &status) != 0) continue;
    check_journal(path, file.get(), static_cast<std::uint64_t>(status.st_size), store_bytes);
  }
}

}  // namespace hfta::storage
