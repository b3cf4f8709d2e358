#include "fusion/data/arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace hfta::fusion {
namespace {

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

}  // namespace

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

Dataset from_named_arrays(const DataSource& source, const Uses& uses, const std::string& place,
                          const ReadArray& array) {
  const auto names = source.x.empty() ? std::vector<std::string>{"x"} : source.x;
  return from_arrays(names, source.y.empty() ? "y" : source.y, uses, place, array);
}

Dataset from_pair(const std::filesystem::path& path, const DataSource& source, const Uses& uses,
                  const std::string& place, const ReadArray& array) {
  if (source.y.empty()) fail_at(place, "y: found nothing, wanted the file of the targets");
  if (!source.x.empty()) fail_at(place, "x: found names beside a file of inputs, wanted one or the other");
  return from_arrays({path.string()}, (path.parent_path() / source.y).string(), uses, place, array);
}

}  // namespace hfta::fusion
