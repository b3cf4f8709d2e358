#include "fusion/codec/slot_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hfta::fusion {
namespace {

// Numbers that a row begins with: the cadence, and whether the step before has measured.
constexpr std::size_t kCurrent = 0, kLeft = 1, kMeasured = 2, kHeader = 3;
// Numbers of each layer. Behind them lie squares and squares of sums, each by output channel.
constexpr std::size_t kBound = 0, kFound = 1, kWanted = 2, kPositions = 3, kInput = 4, kCoherence = 5, kGain = 6,
                      kLayer = 7;

// Numbers that no step wrote are 0.
std::int64_t steps_of(double number, std::int64_t most) {
  return number >= 0 && number <= static_cast<double>(most) ? static_cast<std::int64_t>(number) : 0;
}

// Of a norm's input, whose noise is to be at most that.
float bound_of(double noise) {
  return noise > 0 ? static_cast<float>(std::min(std::numbers::sqrt3 * noise, kMostOfDeviation)) : 0;  // 0 if it is NaN
}

}  // namespace

BoundLayout::BoundLayout(std::vector<std::int64_t> outputs, std::map<std::size_t, std::vector<std::size_t>> below)
    : outputs_(std::move(outputs)),
      offsets_(outputs_.size()),
      below_(std::move(below)),
      norms_above_(outputs_.size(), 0) {
  for (const auto& [norm, layers] : below_) {
    for (const std::size_t layer : layers) ++norms_above_[layer];
  }
  std::size_t next = kHeader;
  for (std::size_t w = 0; w < outputs_.size(); ++w) {
    offsets_[w] = next;
    if (outputs_[w] > 0) next += kLayer + 2 * static_cast<std::size_t>(outputs_[w]);
  }
  size_ = next > kHeader ? next : 0;
}

SlotBounds::SlotBounds(const BoundLayout& layout, std::span<double> row, std::int64_t interval)
    : layout_(layout), row_(row), cadence_{.interval = interval} {
  cadence_.current = std::max<std::int64_t>(steps_of(row[kCurrent], interval), 1);
  cadence_.left = steps_of(row[kLeft], interval);
  renews_ = row[kMeasured] == 1;
  measures_ = cadence_.due();
}

SlotBounds::Sums SlotBounds::sums(std::size_t weight) const {
  const auto count = static_cast<std::size_t>(layout_.outputs(weight));
  const std::span<double> all = row_.subspan(layout_.offset(weight) + kLayer, 2 * count);
  return {all.first(count), all.last(count), &number(weight, kPositions)};
}

std::vector<OutputSums> SlotBounds::sums_by_group(std::size_t weight, std::int64_t groups) const {
  const Sums all = sums(weight);
  const std::size_t count = all.squares.size() / static_cast<std::size_t>(groups);
  std::vector<OutputSums> by_group(static_cast<std::size_t>(groups));
  for (std::size_t g = 0; g < by_group.size(); ++g) {
    OutputSums& group = by_group[g];
    for (std::size_t o = g * count; o < (g + 1) * count; ++o) {
      group.squares += all.squares[o] / static_cast<double>(count);
      group.square_of_sum += all.square_of_sums[o] / static_cast<double>(count);
    }
    group.positions = *all.positions;
  }
  return by_group;
}

float SlotBounds::bound(std::size_t weight, const SavedInput& input, std::int64_t groups, double share) {
  if (renews_) return renewed(weight, bound_for(input, sums_by_group(weight, groups), number(weight, kWanted)));
  return number(weight, kFound) == 1 ? static_cast<float>(number(weight, kBound)) : first_bound(input, share);
}

float SlotBounds::norm_bound(std::size_t norm, double share) {
  if (renews_) return renewed(norm, found_norm_bound(norm));
  return number(norm, kFound) == 1 ? static_cast<float>(number(norm, kBound)) : first_norm_bound(norm, share);
}

float SlotBounds::renewed(std::size_t weight, float now) {
  double& bound = number(weight, kBound);
  double& found = number(weight, kFound);
  if (found == 1) most_ = std::max(most_, movement(static_cast<float>(bound), now));
  bound = static_cast<double>(now);
  found = 1;
  return now;
}

// By the norm's own gradient, (1), and by those below it, (4) and (5).
float SlotBounds::found_norm_bound(std::size_t norm) const {
  const auto squares = [&](std::size_t weight) { return sums_by_group(weight, 1).front().squares; };
  double noise = number(norm, kWanted) / std::sqrt(squares(norm));
  const double gain = number(norm, kGain);
  for (const std::size_t layer : layout_.below(norm)) {
    const double bearable =
        bearable_noise(number(layer, kWanted), number(layer, kInput), squares(layer), layout_.norms_above(layer));
    if (gain > 0) noise = std::min(noise, bearable / gain);
  }
  return bound_of(noise);
}

// What (3) is for a layer: L has nothing to do with x, so that layers' gradients are those of noise, and mean(dy xn) is
// 0.
float SlotBounds::first_norm_bound(std::size_t norm, double share) const {
  const double sigma = share * std::sqrt(2 / std::numbers::pi);
  double noise = sigma;
  for (const std::size_t layer : layout_.below(norm)) {
    noise = std::min(noise, bearable_noise(sigma, 1, 1, layout_.norms_above(layer)) / std::sqrt(coherence(norm)));
  }
  return bound_of(noise);
}

void SlotBounds::set_input(std::size_t weight, double mean_square) const { number(weight, kInput) = mean_square; }

void SlotBounds::set_coherence(std::size_t norm, double coherence) const {
  number(norm, kInput) = 1;
  number(norm, kCoherence) = coherence;
}

double SlotBounds::coherence(std::size_t norm) const { return number(norm, kCoherence); }

void SlotBounds::set_gain(std::size_t norm, double gain) const { number(norm, kGain) = gain; }

void SlotBounds::set_wanted(std::size_t weight, double sigma) const { number(weight, kWanted) = sigma; }

void SlotBounds::end() {
  if (renews_) {
    cadence_.moved(most_);
    cadence_.left = std::max<std::int64_t>(cadence_.left - 1, 0);  // it counts from the step that measured, one ago
  }
  row_[kCurrent] = static_cast<double>(cadence_.current);
  row_[kLeft] = static_cast<double>(cadence_.left);
  row_[kMeasured] = measures_ ? 1 : 0;
}

}  // namespace hfta::fusion
