// Stores: a file is read as `hfta-tune report` and `studies` read it, or refused with an Error{kStorage}; it stays as
// it was, and nothing appears beside it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "base/temporary_folder.hpp"
#include "engine/report/report.hpp"
#include "mutate_store.hpp"
#include "storage/sqlite/sqlite_store.hpp"

extern "C" __attribute__((weak)) std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

namespace fs = std::filesystem;
using namespace hfta;

// Every input is a file of its own folder.
const fs::path& file() {
  static const TemporaryFolder folder("hfta-store-fuzz");
  static const fs::path path = folder.path() / "s.db";
  return path;
}

void read_all() {
  storage::SqliteStore store = storage::SqliteStore::open(file(), storage::SqliteStore::Mode::kReadOnly);
  for (const storage::StudySummary& study : store.studies()) {
    const engine::ReportInput input = engine::read_report(store, study.name);
    static_cast<void>(engine::report_table(input, 10));
    static_cast<void>(engine::report_json(input, std::nullopt));
    static_cast<void>(engine::report_csv(input, std::nullopt));
    static_cast<void>(store.enqueued(study.name));
    static_cast<void>(store.draws(study.name));
    static_cast<void>(store.lease(study.name));
  }
}

std::string bytes_of(const fs::path& path) {
  std::string bytes(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

}  // namespace

// Damaged bytes mostly end at SQLite; here it is the contents that are damaged.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  if (seed % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  CountedRandom random(seed, Stream::kSample, 0);
  const std::vector<std::uint8_t> changed = testing::mutate_store(data, size, random, LLVMFuzzerMutate);
  if (changed.empty() || changed.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}

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
