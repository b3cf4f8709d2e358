#pragma once
/// Measured lowerings, remembered per machine: `${HFTA_CACHE:-~/.cache/hfta-tune}/<key>.json`.

#include <filesystem>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "fusion/measure.hpp"

namespace hfta::engine {

/// What a choice depends on; hashed into the file's name, and kept in the file to tell collisions.
struct ChoiceKey {
  std::string device, library, graph;  ///< Device and CPU model; torch version; signature, dtype and batch.
  int width = 0, threads = 0;
  [[nodiscard]] std::string to_text() const;
};

/// A damaged or foreign file counts as absent; a cache that cannot be written is no error (it only remembers).
class ChoiceCache {
 public:
  /// An empty folder remembers nothing.
  ChoiceCache(Files& files, std::filesystem::path folder);
  [[nodiscard]] std::optional<fusion::MeasuredChoices> find(const ChoiceKey& key);
  void remember(const ChoiceKey& key, const fusion::MeasuredChoices& choices);

 private:
  [[nodiscard]] std::filesystem::path path_of(const ChoiceKey& key) const;

  Files& files_;
  std::filesystem::path folder_;
};

/// The processor's name as the machine tells it.
[[nodiscard]] std::string cpu_model();

}  // namespace hfta::engine
