// Tables: rows of numbers, or an Error{kConfig} in a line that a terminal can show.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "fusion/data/table_file.hpp"
#include "in_memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using hfta::fusion::Use;
  const hfta::testing::InMemoryFile file(data, size);
  for (const Use use : {Use::kNumbers, Use::kLabels}) {
    try {
      const auto table = hfta::fusion::read_table(file.path(), {"y", {}, use, Use::kNumbers}, "t.csv");
      if (table.targets.empty() || table.features.size() != table.targets.size() * table.columns.size()) std::abort();
    } catch (const hfta::Error& error) {
      if (error.kind() != hfta::ErrorKind::kConfig) throw;
      const std::string message = error.what();
      if (message.size() > 10'000 || message.find('\x1b') != std::string::npos) std::abort();
    }
  }
  return 0;
}
