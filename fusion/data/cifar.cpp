#include "fusion/data/cifar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/readers.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

const Shape kImage = {3, 32, 32};
constexpr std::int64_t kPixels = std::int64_t{3} * 32 * 32;

std::string batch_name(int number) { return fmt::format("data_batch_{}.bin", number); }
constexpr int kBatches = 5;

// Files of one set, and the labels of a record in them.
struct Files {
  std::vector<fs::path> paths;
  int labels = 0;  // 0: not CIFAR's
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool in_folder_of_100(const fs::path& folder) { return is_there(folder / "fine_label_names.txt"); }

// A folder with one of the five batches wants all of them: a set that lacks some is not the set that the user means.
Files files_of_folder(const fs::path& folder) {
  std::vector<fs::path> batches;
  for (int i = 1; i <= kBatches; ++i) batches.push_back(folder / batch_name(i));
  if (std::any_of(batches.begin(), batches.end(), is_there)) return {batches, 1};
  if (in_folder_of_100(folder) && is_there(folder / "train.bin")) return {{folder / "train.bin"}, 2};
  return {};
}

// Finds files by the names that the archives have; "train.bin" and "test.bin" may be tokens, so the file of the names
// of classes must be there.
Files files_at(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return files_of_folder(path);
  const std::string name = lower_name(path);
  if (name == "test_batch.bin") return {{path}, 1};
  for (int i = 1; i <= kBatches; ++i) {
    if (name == batch_name(i)) return {{path}, 1};
  }
  if ((name == "train.bin" || name == "test.bin") && in_folder_of_100(path.parent_path())) return {{path}, 2};
  return {};
}

FileData read_records(const fs::path& path, const DataSource& source, const Uses& uses, const DataFiles& files,
                      const std::string& place) {
  if (source.window > 0) {
    fail_at(place, fmt::format("window: found {} beside a file of CIFAR's, wanted none, or another name for a file of "
                               "tokens",
                               source.window));
  }
  const Files found = files_at(path);
  const auto file = files.open_joined(found.paths, place);
  return from_named_arrays(source, uses, place, [&](const std::string& name, Use use) {
    return cifar_array(file, found.labels, name, use, place);
  });
}

}  // namespace

StoredArray cifar_array(const std::shared_ptr<const ByteSource>& file, int labels, const std::string& name, Use use,
                        const std::string& place) {
  const std::int64_t record = labels + kPixels;
  const auto size = static_cast<std::int64_t>(file->size());
  if (size == 0 || size % record != 0) {
    fail_at(place, fmt::format("found {} bytes, wanted records of {}: {} of labels and {} of pixels", size, record,
                               labels, kPixels));
  }
  // Where an array begins within a record.
  std::vector<std::pair<std::string, std::int64_t>> arrays = {{"x", labels}, {"y", labels - 1}};
  if (labels == 2) arrays.insert(arrays.end(), {{"coarse", 0}, {"fine", 1}});
  std::vector<std::string> names;
  for (const auto& [known, first] : arrays) {
    names.push_back(known);
    if (known != name) continue;
    StoredArray array =
        read_numbers({{'u', 1}, false, false, {size}, static_cast<std::size_t>(size)}, file, 0, use, place);
    array.shape = {size / record};
    if (name == "x") array.shape.insert(array.shape.end(), kImage.begin(), kImage.end());
    array.rows = {first, record, nullptr};
    return array;
  }
  fail_at(place, fmt::format("found no array '{}'{}", printable(name), suggestion(name, names)));
}

const DataReader kCifar = {"CIFAR's binary files, or their folder", DataKeys::kNames,
                           [](const fs::path& path) { return files_at(path).labels > 0; }, read_records};

}  // namespace hfta::fusion
