#include "fusion/epochs.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>

#include "fusion/array/layout.hpp"
#include "fusion/array/loss.hpp"
#include "fusion/array/slot_store.hpp"

namespace hfta::fusion {
namespace {

// `dtype`: what numbers become that are no indices.
at::Tensor to_tensor(const Field& field, std::int64_t size, at::ScalarType dtype, const at::Device& device) {
  std::vector<std::int64_t> shape = {size};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  return std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        const at::Tensor host = at::empty(shape, c10::CppTypeToScalarType<T>::value);
        std::copy(values.begin(), values.end(), host.template data_ptr<T>());
        return host.to(device, dtype);
      },
      field.data);
}

}  // namespace

DeviceData to_device(const Dataset& data, const Graph& graph, const Recipe& recipe, const at::Device& device) {
  DeviceData out;
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    const Value& wanted = graph.values[static_cast<std::size_t>(graph.inputs.at(i))];
    out.inputs.push_back(to_tensor(data.inputs[i], data.size, scalar_type(wanted.dtype), device));
  }
  const bool indices = data.target.dtype() == DType::kInt64;
  out.target = to_tensor(data.target, data.size, indices ? at::kLong : scalar_type(recipe.dtype), device);
  out.size = data.size;
  return out;
}

Epochs::Epochs(const Recipe& recipe, const EpochOptions& options, const DeviceData& train, const DeviceData* validation)
    : recipe_(recipe), options_(options), train_(train), validation_(validation) {}

std::int64_t Epochs::steps_per_epoch() const {
  const std::int64_t n = recipe_.batch_size;
  return options_.drop_last || options_.fixed_batch > 0 ? train_.size / n : (train_.size + n - 1) / n;
}

Epochs::OrderKey Epochs::order_key(const Array& array, int slot) const {
  if (!options_.order.shuffle) return {0, 0};
  const int epoch = options_.order.once ? 0 : array.progress(slot).epoch;
  return {epoch, options_.order.per_trial ? array.init_of(slot).seed : 0};
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
    const std::vector<std::int64_t> order =
        epoch_order(train_.size, options_.order, options_.seed, key.second, key.first);
    const at::Tensor host = at::empty({train_.size}, at::kLong);
    std::copy(order.begin(), order.end(), host.data_ptr<std::int64_t>());
    orders[key] = host.to(train_.target.device());
  }
  return orders;
}

Samples Epochs::samples_at(const at::Tensor& order, std::int64_t begin, std::int64_t end) const {
  const at::Tensor rows = order.defined() ? order.slice(0, begin, end) : order;
  const auto take = [&](const at::Tensor& all) {
    return rows.defined() ? all.index_select(0, rows) : all.slice(0, begin, end);
  };
  Samples samples;
  for (const at::Tensor& input : train_.inputs) samples.inputs.push_back(take(input));
  samples.target = take(train_.target);
  return samples;
}

// One epoch of one chunk, step by step.
class Epochs::Run {
 public:
  Run(const Epochs& epochs, Array& array, int chunk)
      : epochs_(epochs), array_(array), chunk_(chunk), first_(array.first_slot(chunk)) {
    for (int b = first_; b < std::min(first_ + array.slots_per_chunk(), array.width()); ++b) {
      if (array.occupied(b)) occupied_.push_back(b);
    }
    rates_.resize(static_cast<std::size_t>(array.slots_per_chunk()), 0.0);
    for (int b = first_; b < first_ + array.slots_per_chunk(); ++b) {  // empty slots look at what the first one sees
      const bool here = b < array.width() && array.occupied(b);
      keys_.push_back(epochs.order_key(array, here ? b : occupied_.front()));
    }
  }

  // `samples_of(key)` gives the samples of this step.
  template <typename SamplesOf>
  void step(std::int64_t samples, SamplesOf samples_of) {
    set_rates();
    Batch batch;
    std::map<OrderKey, int> parts;
    for (const OrderKey& key : keys_) {
      const auto [part, fresh] = parts.try_emplace(key, static_cast<int>(parts.size()));
      if (fresh) batch.parts.push_back(samples_of(key));
      batch.part_of.push_back(part->second);
    }
    const at::Tensor loss = array_.step(chunk_, batch, rates_) * static_cast<double>(samples);
    losses_ = losses_.defined() ? losses_.add_(loss) : loss;
    samples_ += samples;
  }

  std::vector<EpochResult> finish() {
    array_.finish_epoch(chunk_);
    const at::Tensor mean = (losses_ / static_cast<double>(samples_)).cpu();
    std::vector<EpochResult> results;
    for (const int b : occupied_) {
      results.push_back({b, array_.progress(b).epoch, {{"train_loss", mean.data_ptr<double>()[b - first_]}}});
    }
    return results;
  }

 private:
  void set_rates() {
    const auto steps = static_cast<double>(epochs_.steps_per_epoch());
    const auto duration = static_cast<double>(epochs_.recipe_.epochs);
    for (const int b : occupied_) {
      const SlotHyper& hyper = array_.init_of(b).hyper;
      const bool per_step = hyper.schedule.per_step;
      const SlotProgress progress = array_.progress(b);
      rates_[static_cast<std::size_t>(b - first_)] = learning_rate(
          hyper.schedule, hyper.optimizer.lr, per_step ? static_cast<double>(progress.step) : progress.epoch,
          per_step ? duration * steps : duration);
    }
  }

  const Epochs& epochs_;
  Array& array_;
  int chunk_, first_;
  std::vector<int> occupied_;
  std::vector<OrderKey> keys_;
  std::vector<double> rates_;
  at::Tensor losses_;
  std::int64_t samples_ = 0;
};

std::vector<EpochResult> Epochs::run(Array& array) const {
  const Orders orders = orders_for(array);
  Runs runs(static_cast<std::size_t>(array.chunks()));
  array.for_each_chunk([&](int k) { runs[static_cast<std::size_t>(k)] = std::make_unique<Run>(*this, array, k); });
  if (array.shares_layers()) {
    train_in_step(array, runs, orders);
  } else {
    array.for_each_chunk([&](int k) {
      for (std::int64_t s = 0; s < steps_per_epoch(); ++s) {
        const auto [begin, end] = range_of(s);
        runs[static_cast<std::size_t>(k)]->step(
            end - begin, [&, b = begin, e = end](const OrderKey& key) { return samples_at(orders.at(key), b, e); });
      }
    });
  }
  std::vector<ChunkMetrics> validation(static_cast<std::size_t>(array.chunks()));
  if (validation_ != nullptr) validation = evaluate_chunks(array, *validation_, [](int) { return true; });
  std::vector<EpochResult> results;
  for (int k = 0; k < array.chunks(); ++k) {
    if (runs[static_cast<std::size_t>(k)] == nullptr) continue;
    for (EpochResult& result : runs[static_cast<std::size_t>(k)]->finish()) {
      const auto member = static_cast<std::size_t>(result.slot - array.first_slot(k));
      if (validation_ != nullptr) {
        for (const auto& [name, value] : validation[static_cast<std::size_t>(k)][member]) {
          result.metrics["val_" + name] = value;
        }
      }
      results.push_back(std::move(result));
    }
  }
  return results;
}

// All chunks take each step together, so that what slots at one epoch compute alike is computed once.
void Epochs::train_in_step(Array& array, Runs& runs, const Orders& orders) const {
  for (std::int64_t s = 0; s < steps_per_epoch(); ++s) {
    const auto [begin, end] = range_of(s);
    std::map<OrderKey, Samples> samples;
    for (const auto& [key, order] : orders) {
      array.prepare(samples.emplace(key, samples_at(order, begin, end)).first->second, true);
    }
    array.for_each_chunk([&, count = end - begin](int k) {
      runs[static_cast<std::size_t>(k)]->step(count, [&](const OrderKey& key) { return samples.at(key); });
    });
  }
}

std::pair<std::int64_t, std::int64_t> Epochs::range_of(std::int64_t step) const {
  const std::int64_t begin = step * recipe_.batch_size;
  return {begin, std::min<std::int64_t>(begin + recipe_.batch_size, train_.size)};
}

// Larger batches than training's make evaluation of small samples faster; a rule that knows nothing of the array keeps
// its sums the same at any width.
std::int64_t Epochs::evaluation_batch() const {
  if (options_.fixed_batch > 0) return options_.fixed_batch;
  constexpr std::int64_t kElements = std::int64_t{1} << 20;
  const std::int64_t per_sample =
      std::max<std::int64_t>(1, train_.inputs.front().numel() / std::max<std::int64_t>(1, train_.size));
  const std::int64_t small = std::min<std::int64_t>(256, kElements / per_sample);
  const std::int64_t batch = std::max<std::int64_t>(recipe_.batch_size, small);
  return options_.largest_batch > 0 ? std::min(batch, options_.largest_batch) : batch;
}

// In order; the last one is filled up with its last sample where the batch is fixed.
std::vector<Samples> Epochs::evaluation_samples(const DeviceData& data) const {
  std::vector<Samples> all;
  for (std::int64_t begin = 0; begin < data.size; begin += evaluation_batch()) {
    const std::int64_t end = std::min(begin + evaluation_batch(), data.size);
    const std::int64_t missing = options_.fixed_batch > 0 ? options_.fixed_batch - (end - begin) : 0;
    Samples samples;
    for (const at::Tensor& input : data.inputs) {
      at::Tensor rows = input.slice(0, begin, end);
      if (missing > 0) rows = at::cat({rows, rows.slice(0, -1).repeat_interleave(missing, 0)});
      samples.inputs.push_back(rows);
    }
    samples.target = data.target.slice(0, begin, end);
    all.push_back(std::move(samples));
  }
  return all;
}

// Metrics of every chunk that `wanted` and that has an occupied slot.
std::vector<Epochs::ChunkMetrics> Epochs::evaluate_chunks(Array& array, const DeviceData& data,
                                                          const std::function<bool(int chunk)>& wanted) const {
  const int c = array.slots_per_chunk();
  std::vector<MetricSums> sums(static_cast<std::size_t>(array.chunks()), MetricSums(recipe_, c == 1 ? 0 : c));
  const auto add = [&](int chunk, const Samples& samples) {
    if (!wanted(chunk)) return;
    const at::Tensor output = array.predict(chunk, samples).narrow(c > 1 ? 1 : 0, 0, samples.target.size(0));
    const at::Tensor target = c > 1 ? with_slots(samples.target, c) : samples.target;
    sums[static_cast<std::size_t>(chunk)].add(output, target);
  };
  std::vector<Samples> all = evaluation_samples(data);
  if (array.shares_layers()) {
    for (Samples& samples : all) {
      array.prepare(samples, false);
      array.for_each_chunk([&](int k) { add(k, samples); });
      samples.shared.reset();
    }
  } else {
    array.for_each_chunk([&](int k) {
      for (const Samples& samples : all) add(k, samples);
    });
  }
  std::vector<ChunkMetrics> metrics(sums.size());
  array.for_each_chunk([&](int k) {
    if (wanted(k)) metrics[static_cast<std::size_t>(k)] = sums[static_cast<std::size_t>(k)].result();
  });
  return metrics;
}

std::map<std::string, double> Epochs::evaluate(Array& array, int slot, const DeviceData& data,
                                               const std::string& prefix) const {
  const int chunk = slot / array.slots_per_chunk();
  const auto all = evaluate_chunks(array, data, [&](int k) { return k == chunk; });
  std::map<std::string, double> metrics;
  for (const auto& [name, value] :
       all[static_cast<std::size_t>(chunk)].at(static_cast<std::size_t>(slot - array.first_slot(chunk)))) {
    metrics[prefix + name] = value;
  }
  return metrics;
}

}  // namespace hfta::fusion
