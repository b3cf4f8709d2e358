#pragma once
/// Data on the host: loading, splitting and the order of samples. Without torch.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/stamp.hpp"
#include "fusion/graph.hpp"
#include "fusion/numbers.hpp"

namespace hfta::fusion {

/// One named array of samples, row-major; `shape` is that of one sample. It keeps the type that its file has, and
/// becomes what a model takes when a batch is gathered.
struct Field {
  std::string name = {};
  Shape shape = {};
  Numbers data = {};
  SampleRows rows = {};

  /// float32, float64 or int64: Numbers::dtype.
  [[nodiscard]] DType dtype() const { return data.dtype(); }
  /// Elements of one sample.
  [[nodiscard]] std::int64_t stride() const;
  /// Whether the samples are in memory, contiguous from the first number on.
  [[nodiscard]] bool plain() const;
  /// Copies the samples `which` to `out`, as `to`: float32 or float64 of numbers, int64 of whole ones. The bits
  /// are those of a conversion to dtype() and from there to `to`. Thread-safe. Throws Error{kConfig} for a file that
  /// was changed.
  void gather(std::span<const std::int64_t> which, DType to, std::byte* out) const;
  /// Copies the samples [begin, end) to `out`, as `to`.
  void gather(std::int64_t begin, std::int64_t end, DType to, std::byte* out) const;
  /// Copies the samples [begin, end) in the type that is stored.
  void gather_stored(std::int64_t begin, std::int64_t end, std::byte* out) const;
};

/// What targets are read as.
struct TargetForm {
  enum class Kind {
    kNone,     ///< There are none: every array is an input of the model.
    kClasses,  ///< int64, from 0.
    kNumbers,  ///< A float type.
  };
  Kind kind = Kind::kNumbers;
  std::int64_t ignored = -100;  ///< kClasses: a label that may be below 0.

  bool operator==(const TargetForm&) const = default;
};
inline constexpr TargetForm kNoTargets{TargetForm::Kind::kNone};
inline constexpr TargetForm kClassTargets{TargetForm::Kind::kClasses};
inline constexpr TargetForm kNumberTargets{TargetForm::Kind::kNumbers};

/// Samples with their targets.
struct Dataset {
  std::vector<Field> inputs = {};
  Field target = {};  ///< Empty without targets.
  std::int64_t size = 0;
  /// Above 0: samples are windows over one sequence, and each has numbers in common with the next overlap - 1 samples.
  /// Splits then take the sequence's tail.
  std::int64_t overlap = 0;
  bool labelled = true;  ///< Whether there are targets.
};

/// Training data and, where asked for, validation and test data.
struct Splits {
  Dataset train;
  std::optional<Dataset> validation, test;
  /// Fingerprint of the files' numbers before they were split: other data have another one
  /// (fusion/data/fingerprint.hpp says how surely).
  std::string fingerprint = {};
};

/// Cross-validation: the training data in `count` parts, of which one is the validation set.
struct FoldSource {
  int count = 1;  ///< 1: none.
  int fold = 0;   ///< The part that validates, below `count`.
  bool stratified = false;
  std::string groups = {};  ///< The array or column that says which samples stay together; "": none.
};

/// Whether all folds have equally many samples, so that trials of different folds can share an array: groups are of any
/// size.
[[nodiscard]] inline bool has_equal_parts(const FoldSource& source) { return source.groups.empty(); }

/// `data:` of the config, without batch_size.
struct DataSource {
  std::string name = {};  ///< A built-in set ("digits"), or "" for files.
  std::filesystem::path train =
      {};  ///< A file that a reader knows (fusion/data/readers.cpp), or a folder of .npy files
  std::filesystem::path validation_file, test_file;  ///< "" if none or a fraction
  std::optional<double> validation, test;            ///< Fractions of the training file, split by seed.
  std::vector<std::string> x = {};                   ///< Arrays in the .npz or folder; empty: "x".
  std::string
      y;  ///< The array of targets, "": "y"; for a file with inputs alone: the target's file, relative to its folder.
  std::string target = {};                 ///< Column of a table
  std::vector<std::string> features = {};  ///< Columns of a table; empty: all but the target
  std::int64_t window = 0;                 ///< Tokens of a sample of a file of raw tokens; 0: no such file
  std::int64_t stride = 0;                 ///< Tokens from a sample's first to the next one's; 0: window
  std::string dtype = {};                  ///< Element type of a raw token file, one of token_types(); "": "uint16"
  FoldSource folds = {};
  std::string where = {};  ///< "digits.yaml:24", for messages
};

/// Reads and splits. `root` is the folder built-in data lie in. Numbers keep the type of their file. The type
/// that they are used as (Field::dtype) is: for targets as `targets` says;
/// for inputs, int64 if the input's type in `inputs` (the types of the model's inputs, in order; float beyond its end)
/// is an integer or bool. All other inputs are float32 if that holds every value of the file's type (float16, up to
/// 16-bit integers, used without scaling), else float64. If a file is large compared with `memory`, the bytes that the
/// process may use (0: what the machine says), it is not loaded, and batches are read from it with the same bits: .npy
/// in C order, .safetensors, CIFAR's, raw tokens, IDX that is not gzipped, members of an .npz that are not compressed.
/// Every other file is loaded. A file that is not loaded must not change as long as the data are used. Throws
/// Error{kConfig}: missing file, missing array or column (nearest named), not a finite number, not a whole one where
/// integers are wanted, ragged rows, no samples, empty split, unequal lengths, labels below zero, unsupported dtypes.
[[nodiscard]] Splits load_data(const DataSource& source, const TargetForm& targets, std::uint64_t seed,
                               const std::filesystem::path& root, const std::vector<DType>& inputs = {},
                               std::uint64_t memory = 0);

/// The source's files as they lie now: those named, and those in a folder that is named. Empty for a built-in set.
[[nodiscard]] FileStamps stamps_of(const DataSource& source);

/// A key for loaded data: two sources have the same key if all their fields are equal, and their files are the same and
/// unchanged (device, inode, size, time of change).
[[nodiscard]] std::string identity_of(const DataSource& source);

/// A key for the numbers that load_data reads of the source's files, before it splits them. Paths in it begin from
/// `folder`, so that it is the same where the folder has moved with the files.
[[nodiscard]] std::string reading_of(const DataSource& source, const std::filesystem::path& folder);

/// How a config names the arrays of a data file.
enum class DataKeys {
  kNames,    ///< x, y: names of arrays within it.
  kPair,     ///< The file is the one array of inputs; y: the file of the targets, relative to its folder.
  kColumns,  ///< target, features: names of columns.
  kTokens,   ///< window, stride, dtype: raw tokens.
};
/// How a config names the file's arrays, told by its name (a folder: by what is in it); kNames if no reader takes it.
[[nodiscard]] DataKeys data_keys(const std::filesystem::path& path);
/// "" if a reader takes the file, or if no file is there; else what was found and which kinds are wanted.
[[nodiscard]] std::string unread_kind(const std::filesystem::path& path);

/// Types of raw tokens; the first is the default.
[[nodiscard]] const std::vector<std::string>& token_types();

/// Names of the built-in sets.
[[nodiscard]] const std::vector<std::string>& builtin_data();

/// Order of samples in an epoch.
struct OrderOptions {
  bool shuffle = true;     ///< false: the file's order.
  bool once = false;       ///< Every epoch has epoch 0's order.
  bool per_trial = false;  ///< Keyed by the trial as well.
};

/// Indices of epoch `epoch` (0-based) over n samples: a Fisher-Yates permutation drawn from Stream::kOrder, keyed by
/// (seed, epoch) and, if per_trial, by trial_seed.
[[nodiscard]] std::vector<std::int64_t> epoch_order(std::int64_t n, const OrderOptions& options, std::uint64_t seed,
                                                    std::uint64_t trial_seed, int epoch);

}  // namespace hfta::fusion
