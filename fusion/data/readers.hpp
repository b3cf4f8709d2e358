#pragma once
/// The table of data files: which reader takes which. Internal to fusion/data.

#include <filesystem>
#include <string>
#include <vector>

#include "fusion/data/arrays.hpp"
#include "fusion/data/sources.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// One kind of files.
struct DataReader {
  const char* kind;  ///< For messages: ".npz".
  DataKeys keys;     ///< How a config names what is in it.
  /// Whether a file (or folder) of that name is one. Capitals do not matter.
  bool (*takes)(const std::filesystem::path& path);
  /// Throws Error{kConfig}, beginning with `place`.
  Dataset (*read)(const std::filesystem::path& path, const DataSource& source, const Uses& uses, const DataFiles& files,
                  const std::string& place);
  /// The columns that it takes for features where the source names none; null: its arrays have names or places.
  std::vector<std::string> (*features)(const std::filesystem::path& path, const DataSource& source, const Uses& uses,
                                       const std::string& place) = nullptr;
};

/// The first that takes a file reads it.
[[nodiscard]] const std::vector<DataReader>& data_readers();
/// nullptr: none.
[[nodiscard]] const DataReader* reader_of(const std::filesystem::path& path);

/// The name, without its folder, in small letters.
[[nodiscard]] std::string lower_name(const std::filesystem::path& path);
/// The extension in small letters: ".npz".
[[nodiscard]] std::string lower_extension(const std::filesystem::path& path);

extern const DataReader kCifar, kTokens, kNpyFolder, kNpyPair, kNpzArchive, kTable, kSafetensors, kIdxPair;

}  // namespace hfta::fusion
