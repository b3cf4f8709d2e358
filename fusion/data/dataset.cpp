#include "fusion/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "fusion/data/array_file.hpp"
#include "fusion/data/split.hpp"
#include "fusion/data/table_file.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return extension;
}

Field field_of(const std::string& name, StoredArray array, const std::string& place) {
  const bool empty = std::count(array.shape.begin(), array.shape.end(), 0) > 0;
  if (array.shape.empty() || empty) {
    fail_at(place, fmt::format("{}: found an array of shape {}, wanted [samples, ...] with at least one",
                               printable(name), to_text(array.shape)));
  }
  return {name, Shape(array.shape.begin() + 1, array.shape.end()), std::move(array.numbers)};
}

std::int64_t samples_of(const Field& field) {
  const auto count = std::visit([](const auto& data) { return data.size(); }, field.data);
  return static_cast<std::int64_t>(count) / field.stride();
}

// Labels may come as a column, [n, 1]; none may be below zero.
void finish_labels(Field& target, const std::string& place) {
  if (target.shape == Shape{1}) target.shape.clear();
  const auto& labels = std::get<std::vector<std::int64_t>>(target.data);
  const auto negative = std::find_if(labels.begin(), labels.end(), [](std::int64_t label) { return label < 0; });
  if (negative != labels.end()) {
    fail_at(place, fmt::format("{}: found label {} at element {}, wanted classes from 0", printable(target.name),
                               *negative, negative - labels.begin()));
  }
}

// What arrays are read as.
struct Uses {
  Use target = Use::kNumbers;
  std::vector<Use> inputs;  ///< Those beyond its end are numbers.

  [[nodiscard]] Use input(std::size_t i) const { return i < inputs.size() ? inputs[i] : Use::kNumbers; }
};

// `array(name, use)` gives each array.
template <typename ReadArray>
Dataset from_arrays(const std::vector<std::string>& x, const std::string& y, const Uses& uses, const std::string& place,
                    const ReadArray& array) {
  Dataset data;
  for (std::size_t i = 0; i < x.size(); ++i) data.inputs.push_back(field_of(x[i], array(x[i], uses.input(i)), place));
  data.target = field_of(y, array(y, uses.target), place);
  if (uses.target == Use::kLabels) finish_labels(data.target, place);
  data.size = samples_of(data.target);
  for (const Field& input : data.inputs) {
    if (samples_of(input) == data.size) continue;
    fail_at(place, fmt::format("found {} samples of {} and {} of {}, wanted equally many", samples_of(input),
                               printable(input.name), data.size, printable(y)));
  }
  return data;
}

StoredArray read_npy_file(const fs::path& path, Use use, const std::string& place) {
  return parse_npy(read_bytes(path, place), use, place + ": " + printable(path.filename().string()));
}

// A folder of .npy files, named as the members of an .npz would be.
Dataset from_folder(const fs::path& folder, const DataSource& source, const Uses& uses, const std::string& place) {
  const auto names = source.x.empty() ? std::vector<std::string>{"x"} : source.x;
  return from_arrays(names, source.y.empty() ? "y" : source.y, uses, place, [&](const std::string& name, Use use) {
    return read_npy_file(folder / (lower_extension(name) == ".npy" ? name : name + ".npy"), use, place);
  });
}

// One .npy of inputs; the targets' file is named by `y`, from the inputs' folder.
Dataset from_pair(const fs::path& path, const DataSource& source, const Uses& uses, const std::string& place) {
  if (source.y.empty()) fail_at(place, "y: found nothing, wanted the .npy file of the targets");
  if (!source.x.empty()) fail_at(place, "x: found names beside an .npy file of inputs, wanted one or the other");
  return from_arrays({path.string()}, (path.parent_path() / source.y).string(), uses, place,
                     [&](const std::string& name, Use use) { return read_npy_file(name, use, place); });
}

Dataset from_archive(const fs::path& path, const DataSource& source, const Uses& uses, const std::string& place) {
  const auto names = source.x.empty() ? std::vector<std::string>{"x"} : source.x;
  Allowance allowance(fs::file_size(path));
  return from_arrays(names, source.y.empty() ? "y" : source.y, uses, place,
                     [&](const std::string& name, Use use) { return read_npz(path, name, use, allowance, place); });
}

void make_integers(Field& field) {
  const auto& numbers = std::get<std::vector<double>>(field.data);
  field.data = std::vector<std::int64_t>(numbers.begin(), numbers.end());
}

Dataset from_table(const fs::path& path, const DataSource& source, const Uses& uses, const std::string& place) {
  if (source.target.empty()) fail_at(place, "target: found nothing, wanted the name of the target's column");
  NumberTable table = read_table(path, {source.target, source.features, uses.target, uses.input(0)}, place);
  Dataset data;
  data.size = static_cast<std::int64_t>(table.targets.size());
  data.inputs.push_back({"x", {static_cast<std::int64_t>(table.columns.size())}, std::move(table.features)});
  data.target = {source.target, {}, std::move(table.targets)};
  if (uses.target == Use::kLabels) make_integers(data.target);
  if (uses.input(0) == Use::kIntegers) make_integers(data.inputs[0]);
  return data;
}

Dataset load_file(const fs::path& path, const DataSource& source, const Uses& uses) {
  const std::string place = (source.where.empty() ? "data: " : source.where + ": data: ") + printable(path.string());
  if (fs::is_directory(path)) return from_folder(path, source, uses, place);
  if (!fs::exists(path)) fail_at(place, "found no such file");
  const std::string extension = lower_extension(path);
  if (extension == ".npz") return from_archive(path, source, uses, place);
  if (extension == ".npy") return from_pair(path, source, uses, place);
  if (is_table(path)) return from_table(path, source, uses, place);
  fail_at(place,
          fmt::format("found a file of kind '{}', wanted .npz, .npy, .csv, .tsv (or one of these two with .gz) or "
                      "a folder of .npy files",
                      printable(extension)));
}

// 8x8 pixels of 0..16, as images in 0..1.
Dataset load_digits(const fs::path& root, const Uses& uses, const std::string& where) {
  if (uses.input(0) == Use::kIntegers) {
    fail_at(where, "data: found pixels in 0..1 (digits), wanted whole numbers, which the model's input takes");
  }
  DataSource source;
  source.target = "label";
  source.where = where;
  Dataset data = load_file(root / "digits.csv", source, {uses.target, {}});
  Field& images = data.inputs[0];
  const auto& pixels = std::get<std::vector<double>>(images.data);
  if (images.shape != Shape{64}) fail_at(where, "digits.csv: found " + to_text(images.shape) + " pixels, wanted [64]");
  std::vector<float> scaled;
  scaled.reserve(pixels.size());
  for (const double pixel : pixels) scaled.push_back(static_cast<float>(pixel / 16));
  images.shape = {1, 8, 8};
  images.data = std::move(scaled);
  return data;
}

void check_alike(const Dataset& train, const Dataset& other, const fs::path& path, const std::string& place) {
  const auto check = [&](const Field& a, const Field& b) {
    if (a.shape == b.shape) return;
    fail_at(place, fmt::format("{}: {}: found samples of shape {}, wanted {} as in the training data",
                               printable(path.string()), printable(b.name), to_text(b.shape), to_text(a.shape)));
  };
  for (std::size_t i = 0; i < train.inputs.size(); ++i) check(train.inputs[i], other.inputs[i]);
  check(train.target, other.target);
}

std::optional<Dataset> load_beside(const Dataset& train, const fs::path& path, const DataSource& source,
                                   const Uses& uses, const std::string& place) {
  if (path.empty()) return std::nullopt;
  if (lower_extension(path) == ".npy" && path.parent_path() == source.train.parent_path()) {
    fail_at(place, fmt::format("{}: found it in the training data's folder, where '{}' holds their targets; wanted a "
                               "folder of its own",
                               printable(path.string()), printable(source.y)));
  }
  Dataset data = load_file(path, source, uses);
  check_alike(train, data, path, place);
  return data;
}

}  // namespace

DType Field::dtype() const {
  constexpr DType kByIndex[] = {DType::kFloat32, DType::kFloat64, DType::kInt64};
  return kByIndex[data.index()];
}

std::int64_t Field::stride() const {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  return elements;
}

const std::vector<std::string>& builtin_data() {
  static const std::vector<std::string> names{"digits"};
  return names;
}

Splits load_data(const DataSource& source, bool classes, std::uint64_t seed, const fs::path& root,
                 const std::vector<DType>& inputs) {
  Uses uses{classes ? Use::kLabels : Use::kNumbers, {}};
  for (const DType dtype : inputs) uses.inputs.push_back(is_floating(dtype) ? Use::kNumbers : Use::kIntegers);
  const std::string place = source.where.empty() ? "data" : source.where + ": data";
  const bool builtin = !source.name.empty();
  if (builtin && source.name != "digits") {
    fail_at(place, fmt::format("name: found '{}', wanted a built-in set{}", printable(source.name),
                               suggestion(source.name, builtin_data())));
  }
  if (builtin == !source.train.empty()) fail_at(place, "wanted either name or train");
  Dataset data = builtin ? load_digits(root, uses, source.where) : load_file(source.train, source, uses);
  auto validation = load_beside(data, source.validation_file, source, uses, place);
  auto test = load_beside(data, source.test_file, source, uses, place);
  if ((validation && source.validation) || (test && source.test))
    fail_at(place, "wanted a fraction or a file, not both");
  Splits splits = split(std::move(data), source.validation, source.test, seed, place);
  if (validation) splits.validation = std::move(validation);
  if (test) splits.test = std::move(test);
  return splits;
}

}  // namespace hfta::fusion
