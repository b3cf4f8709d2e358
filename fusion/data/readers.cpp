#include "fusion/data/readers.hpp"

#include <algorithm>

namespace hfta::fusion {

const std::vector<DataReader>& data_readers() {
  static const std::vector<DataReader> readers = {kNpyFolder, kNpzArchive, kNpyPair, kTable, kSafetensors, kIdxPair};
  return readers;
}

const DataReader* reader_of(const std::filesystem::path& path) {
  const std::vector<DataReader>& all = data_readers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const DataReader& reader) { return reader.takes(path); });
  return found == all.end() ? nullptr : &*found;
}

std::string lower_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return extension;
}

DataKeys data_keys(const std::filesystem::path& path) {
  const DataReader* const reader = reader_of(path);
  return reader == nullptr ? DataKeys::kNames : reader->keys;
}

}  // namespace hfta::fusion
