#include "fusion/data/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/text.hpp"

namespace hfta::fusion {

std::string place_of(const DataSource& source) { return source.where.empty() ? "data" : source.where + ": data"; }

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

std::string unread_kind(const std::filesystem::path& path) {
  std::error_code error;
  if (reader_of(path) != nullptr || !std::filesystem::is_regular_file(path, error)) return "";
  std::vector<std::string> kinds;
  for (const DataReader& reader : data_readers()) kinds.emplace_back(reader.kind);
  return fmt::format("found a file of kind '{}', wanted one of: {}", printable(lower_extension(path)),
                     join(kinds, "; "));
}

}  // namespace hfta::fusion
