#include "fusion/epochs.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "base/error.hpp"
#include "fusion/training/epoch_run.hpp"

namespace hfta::fusion {
namespace {

void check_sizes(const DeviceData& train, const DeviceData* validation) {
  if (train.size >= 1 && (validation == nullptr || validation->size >= 1)) return;
  throw Error(ErrorKind::kConfig,
              fmt::format("epochs: found {} samples for training{}, wanted at least one of each", train.size,
                          validation == nullptr ? "" : fmt::format(" and {} for validation", validation->size)));
}

}  // namespace

Epochs::Epochs(const Recipe& recipe, const EpochOptions& options, const DeviceData& train, const DeviceData* validation)
    : recipe_(recipe), options_(options), sets_{{&train, validation}} {
  check_sizes(train, validation);
  if (recipe_.batch_size >= 1) return;
  throw Error(ErrorKind::kConfig, fmt::format("epochs: batch_size: found {}, wanted at least 1", recipe_.batch_size));
}

int Epochs::add(const DeviceData& train, const DeviceData* validation) {
  if (train.size != this->train().size || (validation != nullptr) != validates()) {
    throw Error(
        ErrorKind::kInternal,
        fmt::format("epochs: further data: found {} training samples {} validation data, wanted {} {}", train.size,
                    validation != nullptr ? "with" : "without", this->train().size, validates() ? "with" : "without"));
  }
  check_sizes(train, validation);
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

void Epochs::check_slots(const Array& array) const {
  for (int b = 0; b < array.width(); ++b) {
    if (!array.occupied(b)) continue;
    if (const int data = array.init_of(b).data; data >= std::ssize(sets_)) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("slot {}: data: found {}, wanted 0 to {}", b, data, sets_.size() - 1));
    }
    const std::int64_t place = array.progress(b).epoch_step;
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

// asked_anywhere() for one chunk: in a pipeline each chunk is at a step of its own. Rank 0's answer goes from rank to
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
  check_slots(array);
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
      if (array.shares_layers()) array.prepare(here_now, SampleUse::kTraining);
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
