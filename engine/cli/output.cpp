#include "engine/cli/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/text.hpp"

namespace hfta::engine {
namespace {

// 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

void print(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return;
  throw Error(ErrorKind::kStorage, fmt::format("standard output: cannot write: {}", std::strerror(error)));
}

void print_to(const std::filesystem::path& file, const std::string& text) {
  if (file.empty()) return print(text);
  SystemFiles().write_atomically(file, std::as_bytes(std::span(text)));
}

void tell(std::string_view line) { (void)write_all(STDERR_FILENO, "hfta-tune: " + printable(line) + "\n"); }

}  // namespace hfta::engine
