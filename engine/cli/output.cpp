#include "engine/cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/folder.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

int write_text(int file, std::string_view text) { return write_all(file, std::as_bytes(std::span(text))); }

// Pipes and devices are written to, not replaced.
void write_through(const std::filesystem::path& file, std::string_view text) {
  const Descriptor opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  const int error = opened.get() < 0 ? errno : write_text(opened.get(), text);
  if (error == 0 || error == EPIPE) return;
  throw Error(ErrorKind::kStorage, fmt::format("{}: cannot write: {}", file.string(), std::strerror(error)));
}

// Whether an SQLite database begins there: a store, most likely, which no output is meant to replace.
bool is_database(const std::filesystem::path& file) {
  constexpr std::string_view kMagic = "SQLite format 3";  // https://www.sqlite.org/fileformat.html, section 1.3
  const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::array<char, kMagic.size()> begin{};
  if (opened.get() < 0 || ::read(opened.get(), begin.data(), begin.size()) != std::ssize(begin)) return false;
  return std::string_view(begin.data(), begin.size()) == kMagic;
}

}  // namespace

void print(std::string_view text) {
  const int error = write_text(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return;
  throw Error(ErrorKind::kStorage, fmt::format("standard output: cannot write: {}", std::strerror(error)));
}

void print_to(const std::filesystem::path& file, std::string_view text) {
  if (file.empty()) return print(text);
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (file.has_parent_path() && !fs::is_directory(file.parent_path(), ignored)) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: found no folder {}", file.string(), file.parent_path().string()));
  }
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) return write_through(file, text);
  std::error_code error;
  if (is_database(file)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{}: found an SQLite database there, wanted another place to write to", file.string()));
  }
  const fs::path target = fs::is_symlink(file, ignored) ? fs::weakly_canonical(file, error) : file;
  if (error) {
    throw Error(ErrorKind::kStorage, fmt::format("{}: cannot write: {}", file.string(), error.message()));
  }
  SystemFiles().write_atomically(target, std::as_bytes(std::span(text)));
}

void tell(std::string_view line) { (void)write_text(STDERR_FILENO, "hfta-tune: " + printable(line) + "\n"); }

}  // namespace hfta::engine
