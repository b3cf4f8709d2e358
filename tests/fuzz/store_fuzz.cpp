// Stores: a file is read as `hfta-tune report` and `studies` read it, or refused with an Error{kStorage}; it stays as
// it was, and nothing appears beside it.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.hpp"
#include "engine/report/report.hpp"
#include "storage/store.hpp"

namespace {

namespace fs = std::filesystem;
using namespace hfta;

// In memory where that is possible: every input is a file.
const fs::path& file() {
  static const fs::path path = [] {
    const fs::path memory = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    std::string pattern = (memory / "hfta-store-fuzz-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    return fs::path(pattern) / "s.db";
  }();
  return path;
}

void read_all() {
  storage::Store store = storage::Store::open(file(), storage::Store::Mode::kReadOnly);
  for (const storage::StudySummary& study : store.studies()) {
    const engine::ReportInput input = engine::read_report(store, study.name);
    static_cast<void>(engine::report_table(input, 10));
    static_cast<void>(engine::report_json(input, std::nullopt));
    static_cast<void>(engine::report_csv(input, std::nullopt));
  }
}

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::ofstream(file(), std::ios::binary | std::ios::trunc) << bytes;
  try {
    read_all();
  } catch (const Error& error) {
    // A name that only nearly is the study's is a usage error.
    if (error.kind() != ErrorKind::kStorage && error.kind() != ErrorKind::kConfig) throw;
  }
  // A store in WAL mode has files of that mode beside it.
  const bool is_wal = size > 19 && (data[18] == 2 || data[19] == 2);
  const bool is_alone = std::distance(fs::directory_iterator(file().parent_path()), {}) == 1;
  if (bytes_of(file()) != bytes || (!is_alone && !is_wal)) std::abort();
  for (const char* ending : {"-wal", "-shm", "-journal"}) fs::remove(file().string() + ending);
  return 0;
}
