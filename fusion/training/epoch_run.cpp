#include "fusion/training/epoch_run.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "fusion/phases.hpp"

namespace hfta::fusion {

Epochs::Run::Run(const Epochs& epochs, Array& array, const Orders& orders, int chunk)
    : epochs_(epochs),
      array_(array),
      orders_(orders),
      chunk_(chunk),
      first_(array.first_slot(chunk)),
      at_(epochs.steps_per_epoch()) {
  for (int b = first_; b < end(); ++b) {
    if (array.occupied(b)) at_ = std::min(at_, array.progress(b).epoch_step);
  }
  for (int b = first_; b < end(); ++b) {
    if (array.occupied(b) && array.progress(b).epoch_step > at_) take_out(b);
  }
  losses_ = array.fresh_losses(chunk);
  rates_.resize(static_cast<std::size_t>(array.slots_per_chunk()) * static_cast<std::size_t>(array.rates_per_slot()),
                0.0);
  meet();
}

bool Epochs::Run::uses(const OrderKey& key) const {
  return std::find(part_keys_.begin(), part_keys_.end(), key) != part_keys_.end();
}

// One past the chunk's last slot.
int Epochs::Run::end() const { return std::min(first_ + array_.slots_per_chunk(), array_.width()); }

void Epochs::Run::step(const Prepared* prepared) {
  set_rates();
  const BatchShare share = epochs_.share_of(array_, at_);
  for (std::size_t p = 0; p < batch_.parts.size(); ++p) {
    if (prepared != nullptr) {
      batch_.parts[p] = prepared->at(part_keys_[p]);
      continue;
    }
    batch_.parts[p].begin = share.begin;
    batch_.parts[p].end = share.end;
  }
  batch_.earlier = share.first;
  batch_.counts = share.counts;
  batch_.last = at_ + 1 == epochs_.steps_per_epoch();
  batch_.place = at_;
  array_.step(chunk_, batch_, rates_, losses_);
  ++at_;
  if (!ahead_.empty()) meet();
}

void Epochs::Run::pause() {
  const std::vector<at::Tensor> sums = on_host();
  for (const int b : occupied_) {
    std::vector<double> own;
    for (const at::Tensor& of_phase : sums) {
      for (const std::int64_t row : {0, 1}) own.push_back(sum_of(of_phase, row, b));
    }
    array_.pause_epoch(b, at_, own);
  }
  for (const Ahead& other : ahead_) array_.insert(other.slot, other.init, other.state);
  ahead_.clear();
}

std::vector<EpochResult> Epochs::Run::finish() {
  array_.finish_epoch(chunk_);
  const std::vector<at::Tensor> sums = on_host();
  const auto mean = [&](std::size_t phase, int b) { return sum_of(sums[phase], 0, b) / sum_of(sums[phase], 1, b); };
  std::vector<EpochResult> results;
  for (const int b : occupied_) {
    results.push_back({b, array_.progress(b).epoch, {{"train_loss", mean(0, b)}}});
    const std::vector<Phase>& phases = epochs_.recipe_.phases;
    for (std::size_t p = 0; p < phases.size(); ++p) results.back().metrics["train_" + phases[p].loss] = mean(p, b);
  }
  return results;
}

// REQUIRES step > 0.
double Epochs::Run::samples_before(std::int64_t step) const {
  return static_cast<double>(epochs_.range_of(step - 1).second);
}

std::vector<at::Tensor> Epochs::Run::on_host() const {
  std::vector<at::Tensor> sums;
  for (const at::Tensor& losses : losses_) sums.push_back(losses.cpu());
  return sums;
}

// `sums`: of a phase, on the host.
double Epochs::Run::sum_of(const at::Tensor& sums, std::int64_t row, int slot) const {
  return sums.const_data_ptr<double>()[row * sums.size(1) + slot - first_];
}

void Epochs::Run::take_out(int slot) {
  ahead_.push_back({slot, array_.progress(slot).epoch_step, array_.init_of(slot), array_.extract(slot)});
  array_.clear(slot);
}

// Slots that were ahead, and are here now, come back in.
void Epochs::Run::meet() {
  std::erase_if(ahead_, [&](const Ahead& other) {
    if (other.place != at_) return false;
    array_.insert(other.slot, other.init, other.state);
    return true;
  });
  std::vector<int> before = std::exchange(occupied_, {});
  for (int b = first_; b < end(); ++b) {
    if (!array_.occupied(b)) continue;
    occupied_.push_back(b);
    if (at_ > 0 && std::find(before.begin(), before.end(), b) == before.end()) take_sums(b);
  }
  deal_samples();
}

// The sums that the slot was paused with.
void Epochs::Run::take_sums(int slot) {
  const SlotProgress progress = array_.progress(slot);
  const auto put = [&](std::size_t phase, double loss, double weight) {
    losses_[phase].select(1, slot - first_).select(0, 0).fill_(loss);
    losses_[phase].select(1, slot - first_).select(0, 1).fill_(weight);
  };
  const bool unknown = std::isnan(progress.epoch_weight);
  put(0, progress.epoch_loss, unknown ? samples_before(at_) : progress.epoch_weight);
  for (std::size_t p = 0; p < progress.later.size(); ++p) {
    put(p + 1, progress.later[p].epoch_loss, progress.later[p].epoch_weight);
  }
}

// Slots at one epoch share a part of the batch; empty ones look at what the first occupied one sees.
void Epochs::Run::deal_samples() {
  batch_ = {};
  part_keys_.clear();
  for (int b = first_; b < first_ + array_.slots_per_chunk(); ++b) {
    const bool here = b < array_.width() && array_.occupied(b);
    const OrderKey key = epochs_.order_key(array_, here ? b : occupied_.front());
    const auto known = std::find(part_keys_.begin(), part_keys_.end(), key);
    batch_.part_of.push_back(static_cast<int>(known - part_keys_.begin()));
    if (known != part_keys_.end()) continue;
    part_keys_.push_back(key);
    batch_.parts.push_back(epochs_.samples_in(key, orders_.at(key)));
  }
}

void Epochs::Run::set_rates() {
  const auto duration = static_cast<double>(epochs_.recipe_.epochs);
  for (const int b : occupied_) {
    const SlotHyper& hyper = array_.init_of(b).hyper;
    const bool per_step = hyper.schedule.per_step;
    const SlotProgress progress = array_.progress(b);
    double* to = rates_.data() + static_cast<std::ptrdiff_t>(b - first_) * array_.rates_per_slot();
    for (std::size_t p = 0; p < phase_count(epochs_.recipe_); ++p) {
      const auto steps = static_cast<double>(epochs_.updates_per_epoch(hyper, p));
      const auto taken = static_cast<double>(p == 0 ? progress.step : progress.later[p - 1].step);
      const auto rate = [&](const OptimizerHyper& numbers) {
        return learning_rate(hyper.schedule, numbers.lr, per_step ? taken : progress.epoch,
                             per_step ? duration * steps : duration);
      };
      const PhaseNumbers numbers = numbers_of_phase(hyper, p);
      *to++ = rate(numbers.optimizer);
      for (const OptimizerHyper& group : numbers.groups) *to++ = rate(group);
    }
  }
}

}  // namespace hfta::fusion
