#include "fusion/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/text.hpp"
#include "fusion/data/blocks.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/fingerprint.hpp"
#include "fusion/data/folds.hpp"
#include "fusion/data/readers.hpp"
#include "fusion/data/split.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

FileData load_file(const fs::path& path, const DataSource& source, const Uses& uses, const DataFiles& files) {
  const std::string place = place_of(source) + ": " + printable(path.string());
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) fail_at(place, "found no such file");
  if (error) fail_at(place, "cannot be opened: " + error.message());
  if (!fs::is_regular_file(status) && !fs::is_directory(status)) {
    fail_at(place, "found a device or pipe, wanted a file or a folder");
  }
  if (const DataReader* const reader = reader_of(path)) return reader->read(path, source, uses, files, place);
  fail_at(place, unread_kind(path));
}

// The digits: 8x8 pixels of 0..16, as images in 0..1.
Dataset load_digits(const fs::path& root, const Uses& uses, const DataFiles& files, const std::string& where) {
  if (uses.input(0) == Use::kIntegers) {
    fail_at(where, "data: found pixels in 0..1 (digits), wanted whole numbers, which the model's input takes");
  }
  DataSource source;
  source.target = "label";
  source.where = where;
  Dataset data = load_file(root / "digits.csv", source, {uses.target, {}, uses.ignored}, files).data;
  Field& images = data.inputs[0];
  if (images.shape != Shape{64}) fail_at(where, "digits.csv: found " + to_text(images.shape) + " pixels, wanted [64]");
  std::vector<float> scaled;
  for_each_block(images, data.size, [&]<typename T>(std::span<const T> pixels) {
    for (const T pixel : pixels) scaled.push_back(static_cast<float>(pixel) / 16);
  });
  images.shape = {1, 8, 8};
  images.data = scaled;
  return data;
}

void check_alike(const Dataset& train, const Dataset& other, const fs::path& path, const std::string& place) {
  const auto check = [&](const Field& a, const Field& b) {
    if (a.shape == b.shape) return;
    fail_at(place, fmt::format("{}: {}: found samples of shape {}, wanted {} as in the training data",
                               printable(path.string()), printable(b.name), to_text(b.shape), to_text(a.shape)));
  };
  for (std::size_t i = 0; i < train.inputs.size(); ++i) check(train.inputs[i], other.inputs[i]);
  if (train.labelled) check(train.target, other.target);
}

std::optional<Dataset> load_beside(const Dataset& train, const fs::path& path, const DataSource& source,
                                   const Uses& uses, const DataFiles& files, const std::string& place) {
  if (path.empty()) return std::nullopt;
  if (data_keys(path) == DataKeys::kPair && path.parent_path() == source.train.parent_path()) {
    fail_at(place, fmt::format("{}: found it in the training data's folder, where '{}' holds their targets; wanted a "
                               "folder of its own",
                               printable(path.string()), printable(source.y)));
  }
  Dataset data = load_file(path, source, uses, files).data;
  check_alike(train, data, path, place);
  return data;
}

// One number per sample, which says with which others it stays together.
std::vector<std::int64_t> load_groups(const Dataset& data, const DataSource& source, const DataFiles& files,
                                      const std::string& place) {
  const std::string& name = source.folds.groups;
  if (name.empty()) return {};
  const DataKeys keys = source.train.empty() ? DataKeys::kTokens : data_keys(source.train);
  if (keys == DataKeys::kTokens) {
    fail_at(place, fmt::format("folds.groups: found {}, wanted none: these data have no array or column to be named",
                               printable(name)));
  }
  DataSource beside;
  beside.where = source.where;
  beside.x = beside.features = {name};
  fs::path file = source.train;
  if (keys == DataKeys::kPair) file = file.parent_path() / name, beside.x.clear();
  const Dataset groups = load_file(file, beside, {Use::kNothing, {Use::kIntegers}, 0}, files).data;
  const Field& field = groups.inputs.front();
  if (groups.size != data.size || field.stride() != 1) {
    fail_at(place, fmt::format("folds.groups: found {} of {} samples of shape {}, wanted one number for each of {}",
                               printable(name), groups.size, to_text(field.shape), data.size));
  }
  return integers_of(field, groups.size);
}

// Test data are taken out first, so that they are the same for every fold; the groups' numbers go the same way.
Splits split_for_fold(Dataset data, const DataSource& source, const std::vector<std::int64_t>& groups,
                      std::uint64_t seed, const std::string& place) {
  std::vector<std::int64_t> left = groups;  // groups of the samples that are not for test
  if (source.test && !groups.empty()) {
    const Dataset beside{{{"groups", {}, Numbers(groups)}}, {}, data.size, 0, false};
    const Splits chosen = split(beside, std::nullopt, source.test, seed, place, groups);
    left = integers_of(chosen.train.inputs.front(), chosen.train.size);
  }
  Splits splits = split(std::move(data), std::nullopt, source.test, seed, place, groups);
  Splits fold = split_fold(splits.train, source.folds, left, seed, place);
  return {std::move(fold.train), std::move(fold.validation), std::move(splits.test)};
}

Use use_of(TargetForm::Kind kind) {
  switch (kind) {
    case TargetForm::Kind::kNone:
      return Use::kNothing;
    case TargetForm::Kind::kClasses:
      return Use::kLabels;
    case TargetForm::Kind::kNumbers:
      break;
  }
  return Use::kNumbers;
}

}  // namespace

const std::vector<std::string>& builtin_data() {
  static const std::vector<std::string> names{"digits"};
  return names;
}

Splits load_data(const DataSource& source, const TargetForm& targets, std::uint64_t seed, const fs::path& root,
                 const std::vector<DType>& inputs, std::uint64_t memory) {
  const DataFiles files(memory);
  Uses uses{use_of(targets.kind), {}, targets.ignored};
  for (const DType dtype : inputs) uses.inputs.push_back(is_floating(dtype) ? Use::kNumbers : Use::kIntegers);
  const std::string place = place_of(source);
  const bool builtin = !source.name.empty();
  if (builtin && source.name != "digits") {
    fail_at(place, fmt::format("name: found '{}', wanted a built-in set{}", printable(source.name),
                               suggestion(source.name, builtin_data())));
  }
  if (builtin == !source.train.empty()) fail_at(place, "wanted either name or train");
  auto [data, columns] =
      builtin ? FileData(load_digits(root, uses, files, source.where)) : load_file(source.train, source, uses, files);
  DataSource beside = source;  // tables for validation and test have these columns, wherever they stand there
  if (beside.features.empty()) beside.features = columns;
  auto validation = load_beside(data, source.validation_file, beside, uses, files, place);
  auto test = load_beside(data, source.test_file, beside, uses, files, place);
  if ((validation && source.validation) || (test && source.test))
    fail_at(place, "wanted a fraction or a file, not both");
  if (source.folds.count > 1 && (validation || source.validation)) {
    fail_at(place, "validation: found it beside folds, each of which validates on a part of the training data");
  }
  std::vector<const Dataset*> sets = {&data};
  for (const auto* part : {&validation, &test}) {
    if (*part) sets.push_back(&**part);
  }
  const bool folds = source.folds.count > 1;
  const std::vector<std::int64_t> groups =
      folds ? load_groups(data, source, files, place) : std::vector<std::int64_t>();
  const std::string fingerprint = fingerprint_of(sets, groups);
  Splits splits = folds ? split_for_fold(std::move(data), source, groups, seed, place)
                        : split(std::move(data), source.validation, source.test, seed, place);
  if (validation) splits.validation = std::move(validation);
  if (test) splits.test = std::move(test);
  splits.fingerprint = fingerprint;
  return splits;
}

}  // namespace hfta::fusion
