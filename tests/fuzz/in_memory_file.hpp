#pragma once
/// A file that lies in memory, for readers that take a path.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace hfta::testing {

class InMemoryFile {
 public:
  InMemoryFile(const std::uint8_t* data, std::size_t size) : number_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (number_ < 0 || ::write(number_, data, size) != static_cast<ssize_t>(size)) {
      throw std::runtime_error("no file in memory");
    }
  }
  ~InMemoryFile() { ::close(number_); }
  InMemoryFile(const InMemoryFile&) = delete;
  InMemoryFile& operator=(const InMemoryFile&) = delete;
  [[nodiscard]] std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  int number_;
};

}  // namespace hfta::testing
