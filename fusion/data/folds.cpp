#include "fusion/data/folds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fusion/data/blocks.hpp"
#include "fusion/data/file_bytes.hpp"
#include "fusion/data/split.hpp"

namespace hfta::fusion {
namespace {

// Samples that stay together.
struct Group {
  std::vector<std::size_t> samples;
  std::map<std::int64_t, double> by_class;
};

std::vector<Group> groups_in(const std::vector<std::size_t>& order, const std::vector<std::int64_t>& classes,
                             const std::vector<std::int64_t>& ids) {
  std::vector<Group> groups;
  std::map<std::int64_t, std::size_t> place;  // index into `groups` by id
  for (const std::size_t sample : order) {
    const auto [found, is_new] = place.emplace(ids[sample], groups.size());
    if (is_new) groups.emplace_back();
    Group& group = groups[found->second];
    group.samples.push_back(sample);
    ++group.by_class[classes.empty() ? 0 : classes[sample]];
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.samples.size() > b.samples.size(); });
  return groups;
}

std::vector<int> deal_groups(const std::vector<Group>& groups, std::size_t size, int count) {
  std::vector<int> fold_of(size);
  std::map<std::int64_t, double> totals;
  for (const Group& group : groups) {
    for (const auto& [label, samples] : group.by_class) totals[label] += samples;
  }
  std::vector<std::map<std::int64_t, double>> parts(static_cast<std::size_t>(count));
  std::vector<std::size_t> sizes(parts.size());
  for (const Group& group : groups) {
    std::vector<std::pair<double, std::size_t>> has;  // by part: its share of what the group brings, and its samples
    for (std::map<std::int64_t, double>& part : parts) {
      double sum = 0;
      for (const auto& [label, samples] : group.by_class) {
        sum += part[label] * samples / (totals[label] * totals[label]);
      }
      has.emplace_back(sum, sizes[has.size()]);
    }
    const auto fold = static_cast<std::size_t>(std::min_element(has.begin(), has.end()) - has.begin());
    for (const auto& [label, samples] : group.by_class) parts[fold][label] += samples;
    sizes[fold] += group.samples.size();
    for (const std::size_t sample : group.samples) fold_of[sample] = static_cast<int>(fold);
  }
  return fold_of;
}

// The samples by class, each class in their order, without `left_out` of them: the last ones of whichever class has
// most, so that no class loses a share that it would miss.
std::vector<std::size_t> by_class(const std::vector<std::size_t>& order, const std::vector<std::int64_t>& classes,
                                  std::size_t left_out) {
  std::map<std::int64_t, std::vector<std::size_t>> members;
  for (const std::size_t sample : order) members[classes[sample]].push_back(sample);
  const auto smaller = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
  for (; left_out > 0; --left_out) std::max_element(members.begin(), members.end(), smaller)->second.pop_back();
  std::vector<std::size_t> sorted;
  for (const auto& [label, samples] : members) sorted.insert(sorted.end(), samples.begin(), samples.end());
  return sorted;
}

std::vector<std::int64_t> classes_of(const Dataset& data, const std::string& place) {
  if (!data.labelled || data.target.dtype() != DType::kInt64 || !data.target.shape.empty()) {
    fail_at(place,
            "folds.stratified: found no targets that are one class per sample, wanted such (or stratified: "
            "false)");
  }
  return integers_of(data.target, data.size);
}

}  // namespace

std::vector<std::int64_t> integers_of(const Field& field, std::int64_t size) {
  std::vector<std::int64_t> all;
  for_each_block(field, size, [&]<typename T>(std::span<const T> numbers) {
    for (const T number : numbers) all.push_back(static_cast<std::int64_t>(number));
  });
  return all;
}

std::vector<int> deal_folds(std::int64_t size, int count, const std::vector<std::int64_t>& classes,
                            const std::vector<std::int64_t>& groups, std::uint64_t seed) {
  const std::vector<std::int64_t> dealt = permutation(size, seed, 1);
  std::vector<std::size_t> order(dealt.begin(), dealt.end());
  if (!groups.empty()) return deal_groups(groups_in(order, classes, groups), order.size(), count);
  const auto parts = static_cast<std::size_t>(count);
  std::vector<int> fold_of(order.size(), -1);
  const std::size_t left_out = order.size() % parts;
  if (classes.empty()) {
    order.resize(order.size() - left_out);
  } else {
    order = by_class(order, classes, left_out);
  }
  for (std::size_t i = 0; i < order.size(); ++i) fold_of[order[i]] = static_cast<int>(i % parts);
  return fold_of;
}

Splits split_fold(const Dataset& data, const FoldSource& source, const std::vector<std::int64_t>& groups,
                  std::uint64_t seed, const std::string& place) {
  if (source.count < 2 || source.fold < 0 || source.fold >= source.count) {
    fail_at(place, fmt::format("folds: found fold {} of {}, wanted one of 0 to {} of at least 2", source.fold,
                               source.count, source.count - 1));
  }
  if (data.overlap > 0) {
    fail_at(place,
            "folds: found windows over one sequence, which have numbers in common; wanted data.validation, which "
            "takes the sequence's end");
  }
  if (data.size < source.count) {
    fail_at(place,
            fmt::format("folds: found {} samples, wanted at least {}, one for each fold", data.size, source.count));
  }
  const std::set<std::int64_t> different(groups.begin(), groups.end());
  if (!groups.empty() && std::ssize(different) < source.count) {
    fail_at(place, fmt::format("folds.groups: found {} groups, wanted at least {}, one for each fold", different.size(),
                               source.count));
  }
  const std::vector<std::int64_t> classes = source.stratified ? classes_of(data, place) : std::vector<std::int64_t>();
  const std::vector<int> fold_of = deal_folds(data.size, source.count, classes, groups, seed);
  std::vector<std::int64_t> train, validation;
  for (std::int64_t i = 0; i < data.size; ++i) {
    (fold_of[static_cast<std::size_t>(i)] == source.fold ? validation : train).push_back(i);
  }
  return {subset(data, train), subset(data, validation), {}};
}

}  // namespace hfta::fusion
