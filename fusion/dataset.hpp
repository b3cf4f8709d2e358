#pragma once
/// Data on the host: loading, splitting and the order of samples. Without torch.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "fusion/graph.hpp"

namespace hfta::fusion {

/// One named array of samples: `shape` is that of one sample, `data` holds size() of them, row-major.
struct Field {
  std::string name;
  Shape shape;
  std::variant<std::vector<float>, std::vector<double>, std::vector<std::int64_t>> data;

  [[nodiscard]] DType dtype() const;
  /// Elements of one sample.
  [[nodiscard]] std::int64_t stride() const;
};

/// Samples with their targets.
struct Dataset {
  std::vector<Field> inputs;
  Field target;
  std::int64_t size = 0;
};

/// Training data and, where asked for, validation and test data.
struct Splits {
  Dataset train;
  std::optional<Dataset> validation, test;
};

/// The config's `data:` without batch_size.
struct DataSource {
  std::string name;             ///< A built-in set ("digits"), or "" for files.
  std::filesystem::path train;  ///< A file that a reader knows (fusion/data/readers.cpp), or a folder of .npy files
  std::filesystem::path validation_file, test_file;  ///< "" if none or a fraction
  std::optional<double> validation, test;            ///< Fractions of the training file, split by seed.
  std::vector<std::string> x;                        ///< Arrays in the .npz or folder; empty: "x".
  std::string y;       ///< The same for the target, "": "y"; beside a file of inputs: its file, from there.
  std::string target;  ///< Column of a table
  std::vector<std::string> features;  ///< Columns of a table; empty: all but the target
  std::string where;                  ///< "digits.yaml:24", for messages
};

/// Reads and splits. `root` is the folder built-in data lie in. Targets are int64 if `classes` is asked for
/// (cross_entropy), else of float kind. Inputs are float32 if that holds every value of the file's type (float16, up to
/// 16-bit integers, taken as they are, without scaling), else float64; but int64 where `inputs`, the types that the
/// model's inputs have, in order, has a type of integers or bool (those beyond its end: float). Throws Error{kConfig}:
/// missing file, missing array or column (nearest named), not a finite number, not a whole one where integers are
/// wanted, ragged rows, no samples, empty split, unequal lengths, labels below zero, unsupported dtypes.
[[nodiscard]] Splits load_data(const DataSource& source, bool classes, std::uint64_t seed,
                               const std::filesystem::path& root, const std::vector<DType>& inputs = {});

/// How a config names what is in a file of data.
enum class DataKeys {
  kNames,    ///< x, y: names of arrays within it.
  kPair,     ///< It is the one array of inputs; y: the file of the targets, from its folder.
  kColumns,  ///< target, features: names of columns.
};
/// By the file's name (and by what is there, for a folder); kNames for a kind that no reader knows.
[[nodiscard]] DataKeys data_keys(const std::filesystem::path& path);

/// Names of the built-in sets.
[[nodiscard]] const std::vector<std::string>& builtin_data();

/// Order of samples in an epoch.
struct OrderOptions {
  bool shuffle = true;     ///< false: the file's order.
  bool once = false;       ///< Epoch 0's order for ever.
  bool per_trial = false;  ///< Keyed by the trial as well.
};

/// Indices of epoch `epoch` (0-based) over n samples: a Fisher-Yates permutation drawn from Stream::kOrder, keyed by
/// (seed, epoch) and, if per_trial, by trial_seed.
[[nodiscard]] std::vector<std::int64_t> epoch_order(std::int64_t n, const OrderOptions& options, std::uint64_t seed,
                                                    std::uint64_t trial_seed, int epoch);

}  // namespace hfta::fusion
