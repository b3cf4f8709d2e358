#include "storage/sqlite/holder_file.hpp"

#include <sys/file.h>
#include <unistd.h>

#include <array>

namespace hfta::storage {

std::string holder_file(const std::string& token) { return std::string(kHolderPrefix) + token; }

bool names_a_file(const std::string& token) { return token.find('/') == std::string::npos; }

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

bool on_this_host(const std::string& holder) { return holder.ends_with(" on host " + host_name()); }

bool is_let_go(int descriptor) { return ::flock(descriptor, LOCK_SH | LOCK_NB) == 0; }

}  // namespace hfta::storage
