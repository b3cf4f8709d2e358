#pragma once
/// The table of data files: which reader takes which. Internal to fusion/data.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "fusion/data/arrays.hpp"
#include "fusion/data/sources.hpp"
#include "fusion/dataset.hpp"

namespace hfta::fusion {

/// The data of a file.
struct FileData {
  // NOLINTNEXTLINE(google-explicit-constructor): most kinds of files have nothing else
  FileData(Dataset all, std::vector<std::string> names = {}) : data(std::move(all)), columns(std::move(names)) {}

  Dataset data;
  std::vector<std::string> columns;  ///< Names of a table's features, in their order.
};

/// One kind of files.
struct DataReader {
  const char* kind;  ///< Name for messages: ".npz".
  DataKeys keys;     ///< How a config names what is in it.
  /// Whether a file (or folder) of that name is one. Capitals do not matter.
  bool (*takes)(const std::filesystem::path& path);
  /// Throws Error{kConfig}, beginning with `place`.
  FileData (*read)(const std::filesystem::path& path, const DataSource& source, const Uses& uses,
                   const DataFiles& files, const std::string& place);
};

/// "d.yaml:3: data": how messages about the source begin.
[[nodiscard]] std::string place_of(const DataSource& source);

/// All readers; the first that takes a file reads it.
[[nodiscard]] const std::vector<DataReader>& data_readers();
/// The reader of that file; nullptr: there is none.
[[nodiscard]] const DataReader* reader_of(const std::filesystem::path& path);

/// The name, without its folder, in small letters.
[[nodiscard]] std::string lower_name(const std::filesystem::path& path);
/// The extension in small letters: ".npz".
[[nodiscard]] std::string lower_extension(const std::filesystem::path& path);

extern const DataReader kCifar, kTokens, kNpyFolder, kNpyPair, kNpzArchive, kTable, kSafetensors, kIdxPair;

}  // namespace hfta::fusion
