#include "fusion/data/readers.hpp"

#include <algorithm>

namespace hfta::fusion {

const std::vector<DataReader>& data_readers() {
  static const std::vector<DataReader> readers = {kCifar, kNpyFolder,   kNpzArchive, kNpyPair,
                                                  kTable, kSafetensors, kIdxPair,    kTokens};
  return readers;
}

const DataReader* reader_of(const std::filesystem::path& path) {
  const std::vector<DataReader>& all = data_readers();
  const auto found = std::find_if(all.begin(), all.end(), [&](const DataReader& reader) { return reader.takes(path); });
  return found == all.end() ? nullptr : &*found;
}

std::string lower_name(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

std::string lower_extension(const std::filesystem::path& path) { return lower_name(path.extension()); }

DataKeys data_keys(const std::filesystem::path& path) {
  const DataReader* const reader = reader_of(path);
  return reader == nullptr ? DataKeys::kNames : reader->keys;
}

}  // namespace hfta::fusion
