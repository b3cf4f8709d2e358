#include "fusion/data/arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "fusion/data/blocks.hpp"
#include "fusion/data/file_bytes.hpp"

namespace hfta::fusion {
namespace {

Field field_of(const std::string& name, StoredArray array, const std::string& place) {
  const bool empty = std::count(array.shape.begin(), array.shape.end(), 0) > 0;
  if (array.shape.empty() || empty) {
    fail_at(place, fmt::format("{}: found an array of shape {}, wanted [samples, ...] with at least one",
                               printable(name), to_text(array.shape)));
  }
  return {name, Shape(array.shape.begin() + 1, array.shape.end()), std::move(array.numbers), std::move(array.rows)};
}

// Labels may come as a column, [n, 1]; none may be below zero, but the one that is ignored.
void finish_labels(Field& target, std::int64_t size, std::int64_t ignored, const std::string& place) {
  if (target.shape == Shape{1}) target.shape.clear();
  if (target.data.type().kind == 'u' || target.data.type().kind == 'b') return;
  std::int64_t before = 0;
  for_each_block(target, size, [&]<typename T>(std::span<const T> labels) {
    const auto negative = std::find_if(labels.begin(), labels.end(), [&](T label) {
      return label < 0 && static_cast<std::int64_t>(label) != ignored;
    });
    if (negative != labels.end()) {
      fail_at(place, fmt::format("{}: found label {} at element {}, wanted classes from 0", printable(target.name),
                                 *negative, before + (negative - labels.begin())));
    }
    before += std::ssize(labels);
  });
}

}  // namespace

Dataset from_arrays(const std::vector<std::string>& x, const std::string& y, const Uses& uses, const std::string& place,
                    const ReadArray& array) {
  Dataset data;
  std::vector<std::int64_t> sizes;
  const auto field = [&](const std::string& name, Use use) {
    StoredArray found = array(name, use);
    sizes.push_back(found.shape.empty() ? 0 : found.shape.front());
    return field_of(name, std::move(found), place);
  };
  for (std::size_t i = 0; i < x.size(); ++i) data.inputs.push_back(field(x[i], uses.input(i)));
  data.labelled = uses.target != Use::kNothing;
  if (data.labelled) data.target = field(y, uses.target);
  data.size = sizes.back();
  if (uses.target == Use::kLabels) finish_labels(data.target, data.size, uses.ignored, place);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (sizes[i] == data.size) continue;
    fail_at(place, fmt::format("found {} samples of {} and {} of {}, wanted equally many", sizes[i], printable(x[i]),
                               data.size, printable(data.labelled ? y : x.back())));
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
  const bool labelled = uses.target != Use::kNothing;
  if (labelled && source.y.empty()) fail_at(place, "y: found nothing, wanted the file of the targets");
  if (!source.x.empty()) fail_at(place, "x: found names beside a file of inputs, wanted one or the other");
  return from_arrays({path.string()}, (path.parent_path() / source.y).string(), uses, place, array);
}

}  // namespace hfta::fusion
