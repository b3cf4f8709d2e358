// A folder of checkpoints: names and contents of any kind; what is loaded is what was saved. The input is lines of
// names, an empty line, and bytes that every one of those files holds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/memory_files.hpp"
#include "fusion/data/safetensors.hpp"
#include "storage/checkpoints.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::size_t blank = std::min(rest.find("\n\n"), rest.size());
  std::string_view names = rest.substr(0, blank);
  rest.remove_prefix(std::min(blank + 2, rest.size()));
  const auto bytes = std::as_bytes(std::span(rest.data(), rest.size()));
  const hfta::Faults none;
  hfta::MemoryFiles files(none);
  while (!names.empty()) {
    const std::size_t end = std::min(names.find('\n'), names.size());
    files.write_atomically(std::filesystem::path("states") / names.substr(0, end), bytes);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  hfta::storage::Checkpoints checkpoints(files, "states");
  checkpoints.sweep();
  for (const int trial : checkpoints.trials()) {
    if (const auto found = checkpoints.load(trial)) {
      if (!std::equal(found->bytes.begin(), found->bytes.end(), bytes.begin(), bytes.end())) std::abort();
    }
    checkpoints.save(trial, 7, bytes);
    const auto saved = checkpoints.load(trial);
    if (!saved || saved->epoch != 7 || saved->bytes.size() != bytes.size()) std::abort();
    try {
      (void)hfta::fusion::parse_safetensors(saved->bytes);
    } catch (const hfta::Error& error) {
      if (error.kind() != hfta::ErrorKind::kStorage) throw;
    }
    checkpoints.remove(trial);
    if (checkpoints.load(trial)) std::abort();
  }
  return 0;
}
