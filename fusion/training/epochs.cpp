#include "fusion/epochs.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "fusion/phases.hpp"

namespace hfta::fusion {
Epochs::Epochs(const Recipe& recipe, const EpochOptions& options, const DeviceData& train, const DeviceData* validation)
    : recipe_(recipe), options_(options), sets_{{&train, validation}} {}

int Epochs::add(const DeviceData& train, const DeviceData* validation) {
  sets_.push_back({&train, validation});
  return static_cast<int>(sets_.size()) - 1;
}

std::int64_t Epochs::steps_per_epoch() const {
  const std::int64_t n = recipe_.batch_size;
  return options_.drop_last || options_.fixed_batch > 0 ? train().size / n : (train().size + n - 1) / n;
}

std::int64_t Epochs::updates_per_epoch(const SlotHyper& hyper, std::size_t phase) const {
  if (!recipe_.phases.empty()) return steps_per_epoch() / recipe_.phases.at(phase).every;
  const std::int64_t batches = recipe_.accumulates ? std::max<std::int64_t>(hyper.accumulate, 1) : 1;
  return (steps_per_epoch() + batches - 1) / batches;
}

Epochs::OrderKey Epochs::order_key(const Array& array, int slot) const {
  const int data = array.init_of(slot).data;
  if (!options_.order.shuffle) return {0, 0, data};
  const int epoch = options_.order.once ? 0 : array.progress(slot).epoch;
  return {epoch, options_.order.per_trial ? array.init_of(slot).seed : 0, data};
}

// An order that is not shuffled is undefined: samples are then slices of the data, not copies.
Epochs::Orders Epochs::orders_for(const Array& array) const {
  Orders orders;
  for (int b = 0; b < array.width(); ++b) {
    if (!array.occupied(b)) continue;
    const OrderKey key = order_key(array, b);
    if (orders.contains(key)) continue;
    orders[key] = at::Tensor();
    if (!options_.order.shuffle) continue;
    const DeviceData& data = *sets_.at(static_cast<std::size_t>(key.data)).train;
    const std::vector<std::int64_t> order = epoch_order(data.size, options_.order, options_.seed, key.trial, key.epoch);
    const at::Tensor host = at::empty({data.size}, at::kLong);
    std::copy(order.begin(), order.end(), host.data_ptr<std::int64_t>());
    orders[key] = host.to((data.inputs.empty() ? data.target : data.inputs.front()).device());
  }
  return orders;
}

Samples Epochs::samples_in(const OrderKey& key, const at::Tensor& order) const {
  const DeviceData& data = *sets_[static_cast<std::size_t>(key.data)].train;
  return {data.inputs, data.target, order, 0, 0};
}

// The rest of one chunk's epoch, step by step. Its slots may be at different places: those that are ahead wait outside
// the array until the others have come to them.
class Epochs::Run {
 public:
  Run(const Epochs& epochs, Array& array, const Orders& orders, int chunk)
      : epochs_(epochs),
        array_(array),
        orders_(orders),
        chunk_(chunk),
        first_(array.first_slot(chunk)),
        at_(epochs.steps_per_epoch()) {
    const int end = std::min(first_ + array.slots_per_chunk(), array.width());
    for (int b = first_; b < end; ++b) {
      if (array.occupied(b)) at_ = std::min(at_, array.progress(b).epoch_step);
    }
    for (int b = first_; b < end; ++b) {
      if (array.occupied(b) && array.progress(b).epoch_step > at_) take_out(b);
    }
    losses_ = array.fresh_losses(chunk);
    rates_.resize(static_cast<std::size_t>(array.slots_per_chunk()) * static_cast<std::size_t>(array.rates_per_slot()),
                  0.0);
    meet();
  }

  /// Steps of the epoch that are done.
  [[nodiscard]] std::int64_t at() const { return at_; }
  [[nodiscard]] bool uses(const OrderKey& key) const {
    return std::find(part_keys_.begin(), part_keys_.end(), key) != part_keys_.end();
  }

  /// `prepared`: the step's samples by order, if they were prepared for all slots.
  void step(const Prepared* prepared) {
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

  /// All slots are in the array again, and know how far they are.
  void pause() {
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

  std::vector<EpochResult> finish() {
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

 private:
  struct Ahead {
    int slot;
    std::int64_t place;
    SlotInit init;
    StateBytes state;
  };

  // REQUIRES step > 0.
  [[nodiscard]] double samples_before(std::int64_t step) const {
    return static_cast<double>(epochs_.range_of(step - 1).second);
  }

  [[nodiscard]] std::vector<at::Tensor> on_host() const {
    std::vector<at::Tensor> sums;
    for (const at::Tensor& losses : losses_) sums.push_back(losses.cpu());
    return sums;
  }

  // `sums`: of a phase, on the host.
  [[nodiscard]] double sum_of(const at::Tensor& sums, std::int64_t row, int slot) const {
    return sums.const_data_ptr<double>()[row * sums.size(1) + slot - first_];
  }

  void take_out(int slot) {
    ahead_.push_back({slot, array_.progress(slot).epoch_step, array_.init_of(slot), array_.extract(slot)});
    array_.clear(slot);
  }

  // Slots that were ahead, and are here now, come back in.
  void meet() {
    std::erase_if(ahead_, [&](const Ahead& other) {
      if (other.place != at_) return false;
      array_.insert(other.slot, other.init, other.state);
      return true;
    });
    std::vector<int> before = std::exchange(occupied_, {});
    const int end = std::min(first_ + array_.slots_per_chunk(), array_.width());
    for (int b = first_; b < end; ++b) {
      if (!array_.occupied(b)) continue;
      occupied_.push_back(b);
      if (at_ > 0 && std::find(before.begin(), before.end(), b) == before.end()) take_sums(b);
    }
    deal_samples();
  }

  // The sums that the slot was paused with.
  void take_sums(int slot) {
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
  void deal_samples() {
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

  void set_rates() {
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

  const Epochs& epochs_;
  Array& array_;
  const Orders& orders_;
  int chunk_, first_;
  std::int64_t at_;
  std::vector<int> occupied_;
  std::vector<Ahead> ahead_;
  Batch batch_;
  std::vector<OrderKey> part_keys_;  // of batch_.parts
  std::vector<double> rates_;        // Array::step
  std::vector<at::Tensor> losses_;   // by phase: sums over the epoch's batches so far, [2, c], as Array::step adds them
};

void Epochs::check_places(const Array& array) const {
  for (int b = 0; b < array.width(); ++b) {
    const std::int64_t place = array.occupied(b) ? array.progress(b).epoch_step : 0;
    if (place <= steps_per_epoch()) continue;
    throw Error(ErrorKind::kStorage, fmt::format("slot state: metadata 'epoch_step': found {}, wanted at most {}",
                                                 place, steps_per_epoch()));
  }
}

std::vector<EpochResult> Epochs::run(Array& array) const {
  return *run(array, [] { return false; });
}

namespace {

// Ranks stop behind the same step.
bool asked_anywhere(const Array& array, const Pause& pause) {
  if (array.group() == nullptr) return pause();
  std::byte asked{array.group()->rank() == 0 && pause()};
  array.group()->broadcast(std::span(&asked, 1), 0);
  return asked != std::byte{0};
}

// The same of one chunk, beside others: in a pipeline each is at a step of its own. What rank 0 says goes from rank to
// rank, as the gradients of the step before did.
bool asked_for_chunk(const Array& array, int chunk, const Pause& pause) {
  Collectives* const group = array.group();
  if (group == nullptr) return pause();
  std::byte asked{0};
  if (group->rank() == 0) {
    asked = std::byte{pause()};
  } else {
    group->receive(group->rank() - 1, chunk, std::span(&asked, 1));
  }
  if (group->rank() + 1 < group->ranks()) group->send(group->rank() + 1, chunk, std::span(&asked, 1));
  return asked != std::byte{0};
}

}  // namespace

std::optional<std::vector<EpochResult>> Epochs::run(Array& array, const Pause& pause) const {
  check_places(array);
  const Orders orders = orders_for(array);
  std::atomic<bool> paused = false;
  const Pause once = [&] {
    if (!paused && pause()) paused = true;
    return paused.load();
  };
  Runs runs(static_cast<std::size_t>(array.chunks()));
  array.for_each_chunk(
      [&](int k) { runs[static_cast<std::size_t>(k)] = std::make_unique<Run>(*this, array, orders, k); });
  const auto put_back = [&] {
    for (const auto& run : runs) {
      if (run != nullptr) run->pause();
    }
  };
  try {
    train(array, runs, orders, once);
  } catch (...) {
    try {
      put_back();
    } catch (const std::exception&) {  // the first failure is what is told
    }
    throw;
  }
  // Whoever was paused behind its last step waits for the evaluation; without one there is nothing to wait for.
  const bool trained = std::all_of(runs.begin(), runs.end(),
                                   [&](const auto& r) { return r == nullptr || r->at() == steps_per_epoch(); });
  if (!trained || (validates() && asked_anywhere(array, once))) {
    put_back();
    return std::nullopt;
  }
  return finish(array, runs);
}

void Epochs::train(Array& array, Runs& runs, const Orders& orders, const Pause& pause) const {
  const bool at_hand = std::all_of(orders.begin(), orders.end(),
                                   [&](const auto& entry) { return samples_in(entry.first, entry.second).at_hand(); });
  if (array.shares_layers() || !at_hand || array.divides_batches()) {
    train_in_step(array, runs, orders, [&] { return asked_anywhere(array, pause); });
  } else {
    array.for_each_chunk([&](int k) {
      Run& run = *runs[static_cast<std::size_t>(k)];
      while (run.at() < steps_per_epoch() && !asked_for_chunk(array, k, pause)) run.step(nullptr);
    });
  }
}

std::vector<EpochResult> Epochs::finish(Array& array, Runs& runs) const {
  const bool evaluates = validates() && (!array.divides_batches() || array.group()->rank() == 0);
  std::vector<std::vector<ChunkMetrics>> validation;  // by set of data and chunk
  for (std::size_t set = 0; evaluates && set < sets_.size(); ++set) {
    const auto trains_on_it = [&](int slot) {
      return array.occupied(slot) && array.init_of(slot).data == static_cast<int>(set);
    };
    validation.push_back(evaluate_chunks(array, *sets_[set].validation, [&](int chunk) {
      const int first = array.first_slot(chunk), end = std::min(first + array.slots_per_chunk(), array.width());
      for (int slot = first; slot < end; ++slot) {
        if (trains_on_it(slot)) return true;
      }
      return false;
    }));
  }
  std::vector<EpochResult> results;
  for (int k = 0; k < array.chunks(); ++k) {
    if (runs[static_cast<std::size_t>(k)] == nullptr) continue;
    for (EpochResult& result : runs[static_cast<std::size_t>(k)]->finish()) {
      const auto member = static_cast<std::size_t>(result.slot - array.first_slot(k));
      if (evaluates && array.has_answers()) {
        const auto set = static_cast<std::size_t>(array.init_of(result.slot).data);
        for (const auto& [name, value] : validation[set][static_cast<std::size_t>(k)][member]) {
          result.metrics["val_" + name] = value;
        }
      }
      results.push_back(std::move(result));
    }
  }
  return results;
}

// All chunks take each step together, so that what slots at one epoch compute alike is computed once. A chunk that is
// ahead waits.
void Epochs::train_in_step(Array& array, Runs& runs, const Orders& orders, const Pause& asked) const {
  const auto here = [](const std::unique_ptr<Run>& run, std::int64_t s) { return run != nullptr && run->at() == s; };
  for (std::int64_t s = 0; s < steps_per_epoch(); ++s) {
    if (std::none_of(runs.begin(), runs.end(), [&](const auto& run) { return here(run, s); })) continue;
    if (asked()) return;
    const BatchShare share = share_of(array, s);
    Prepared samples;
    for (const auto& [key, order] : orders) {
      const auto uses = [&, &k = key](const auto& run) { return here(run, s) && run->uses(k); };
      if (std::none_of(runs.begin(), runs.end(), uses)) continue;
      Samples& here_now = samples.emplace(key, samples_in(key, order)).first->second;
      here_now.begin = share.begin;
      here_now.end = share.end;
      if (!here_now.at_hand()) here_now = here_now.taken();
      if (array.shares_layers()) array.prepare(here_now, true);
    }
    array.for_each_chunk([&](int k) {
      Run& run = *runs[static_cast<std::size_t>(k)];
      if (run.at() == s) run.step(&samples);
    });
  }
}

BatchShare Epochs::share_of(const Array& array, std::int64_t step) const {
  const auto [begin, end] = range_of(step);
  if (!array.divides_batches()) return {begin, end, 0, true};
  return share_of_batch(begin, end, array.group()->rank(), array.parts());
}

std::pair<std::int64_t, std::int64_t> Epochs::range_of(std::int64_t step) const {
  const std::int64_t begin = step * recipe_.batch_size;
  return {begin, std::min<std::int64_t>(begin + recipe_.batch_size, train().size)};
}

}  // namespace hfta::fusion
