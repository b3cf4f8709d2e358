// Data in NumPy's files.

#include <filesystem>

#include "base/text.hpp"
#include "fusion/data/readers.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

StoredArray read_npy_file(const fs::path& path, Use use, const DataFiles& files, const std::string& place) {
  return parse_npy(files.open(path, place), use, place + ": " + printable(path.filename().string()));
}

// A folder of .npy files, named as the members of an .npz would be.
FileData read_folder(const fs::path& folder, const DataSource& source, const Uses& uses, const DataFiles& files,
                     const std::string& place) {
  return from_named_arrays(source, uses, place, [&](const std::string& name, Use use) {
    return read_npy_file(folder / (lower_extension(name) == ".npy" ? name : name + ".npy"), use, files, place);
  });
}

FileData read_pair(const fs::path& path, const DataSource& source, const Uses& uses, const DataFiles& files,
                   const std::string& place) {
  return from_pair(path, source, uses, place,
                   [&](const std::string& name, Use use) { return read_npy_file(name, use, files, place); });
}

FileData read_archive(const fs::path& path, const DataSource& source, const Uses& uses, const DataFiles& files,
                      const std::string& place) {
  Allowance allowance(fs::file_size(path));
  return from_named_arrays(source, uses, place, [&](const std::string& name, Use use) {
    return read_npz(path, name, use, files, allowance, place);
  });
}

}  // namespace

const DataReader kNpyFolder = {"a folder of .npy files", DataKeys::kNames,
                               [](const fs::path& path) {
                                 std::error_code ignored;
                                 return fs::is_directory(path, ignored);
                               },
                               read_folder};
const DataReader kNpyPair = {".npy", DataKeys::kPair,
                             [](const fs::path& path) { return lower_extension(path) == ".npy"; }, read_pair};
const DataReader kNpzArchive = {".npz", DataKeys::kNames,
                                [](const fs::path& path) { return lower_extension(path) == ".npz"; }, read_archive};

}  // namespace hfta::fusion
