#include "storage/state_survey.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>

#include "base/error.hpp"
#include "base/folder.hpp"
#include "storage/state_file.hpp"

namespace hfta::storage {
namespace {

using Kind = StateEntry::Kind;

// The entry of a state file, read and checked; nullopt if the file is gone.
std::optional<StateEntry> verified(const Folder& folder, const StateFile& named) {
  StateEntry entry{named.name(), Kind::kDamaged, named.trial, named.epoch, named.size, {}};
  try {
    const std::optional<Descriptor> file = folder.file(entry.name, O_RDONLY);
    if (!file) return std::nullopt;
    struct stat status {};
    if (::fstat(file->get(), &status) == 0 && static_cast<std::size_t>(status.st_size) != named.size) return entry;
    const std::vector<std::byte> bytes = read_rest(*file, folder.path() / entry.name, named.size);
    if (bytes.size() == named.size && checksum_of(bytes) == named.checksum) entry.kind = Kind::kState;
  } catch (const Error& error) {
    entry.detail = error.what();
    entry.kind = Kind::kUnread;
  }
  return entry;
}

}  // namespace

std::vector<StateEntry> survey_states(const std::filesystem::path& root, const std::filesystem::path& path) {
  std::vector<StateEntry> found;
  const std::optional<Folder> folder = Folder::find(root, path);
  if (!folder) return found;
  for (const Folder::Entry& entry : folder->entries()) {
    const std::optional<StateFile> named = state_file_from(entry.name);
    if (!entry.is_file && (named || !is_temporary_state(entry.name))) {
      found.push_back({entry.name, Kind::kNoFile, named ? named->trial : 0, 0, 0, entry.kind});
    } else if (named) {
      if (auto state = verified(*folder, *named)) found.push_back(std::move(*state));
    } else {
      found.push_back({entry.name, is_temporary_state(entry.name) ? Kind::kTemporary : Kind::kUnknown, 0, 0, 0,
                       entry.is_file ? "" : entry.kind});
    }
  }
  return found;
}

}  // namespace hfta::storage
