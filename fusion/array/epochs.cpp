#include "fusion/epochs.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <mutex>

#include "fusion/array/loss.hpp"
#include "fusion/array/slot_store.hpp"

namespace hfta::fusion {
namespace {

at::Tensor to_tensor(const Field& field, std::int64_t size, const Recipe& recipe, const at::Device& device) {
  std::vector<std::int64_t> shape = {size};
  shape.insert(shape.end(), field.shape.begin(), field.shape.end());
  return std::visit(
      [&](const auto& values) {
        using T = typename std::decay_t<decltype(values)>::value_type;
        constexpr bool index = std::is_same_v<T, std::int64_t>;
        const at::Tensor host = at::empty(shape, c10::CppTypeToScalarType<T>::value);
        std::copy(values.begin(), values.end(), host.template data_ptr<T>());
        return host.to(device, index ? at::kLong : scalar_type(recipe.dtype));
      },
      field.data);
}

// Larger batches than training's make evaluation faster; a fixed rule keeps its sums the same at any width.
std::int64_t evaluation_batch(const Recipe& recipe) { return std::max<std::int64_t>(recipe.batch_size, 256); }

}  // namespace

DeviceData to_device(const Dataset& data, const Recipe& recipe, const at::Device& device) {
  DeviceData out;
  for (const Field& field : data.inputs) out.inputs.push_back(to_tensor(field, data.size, recipe, device));
  out.target = to_tensor(data.target, data.size, recipe, device);
  out.size = data.size;
  return out;
}

Epochs::Epochs(const Recipe& recipe, const EpochOptions& options, const DeviceData& train, const DeviceData* validation)
    : recipe_(recipe), options_(options), train_(train), validation_(validation) {}

std::int64_t Epochs::steps_per_epoch() const {
  const std::int64_t n = recipe_.batch_size;
  return options_.drop_last ? train_.size / n : (train_.size + n - 1) / n;
}

std::pair<int, std::uint64_t> Epochs::order_key(const Array& array, int slot) const {
  const int epoch = options_.order.shuffle && !options_.order.once ? array.progress(slot).epoch : 0;
  return {epoch, options_.order.per_trial ? array.init_of(slot).seed : 0};
}

Epochs::Orders Epochs::orders_for(const Array& array) const {
  Orders orders;
  for (int b = 0; b < array.width(); ++b) {
    if (!array.occupied(b) || !options_.order.shuffle) continue;
    const auto key = order_key(array, b);
    if (orders.contains(key)) continue;
    const std::vector<std::int64_t> order =
        epoch_order(train_.size, options_.order, options_.seed, key.second, key.first);
    const at::Tensor host = at::empty({train_.size}, at::kLong);
    std::copy(order.begin(), order.end(), host.data_ptr<std::int64_t>());
    orders[key] = host.to(train_.target.device());
  }
  return orders;
}

// `orders`: one for all slots of the chunk, or one per slot; nullptr stands for the file's order.
Batch Epochs::batch_at(const std::vector<const at::Tensor*>& orders, std::int64_t begin, std::int64_t end) const {
  Batch batch;
  batch.per_slot = orders.size() > 1;
  std::vector<at::Tensor> parts;
  for (const at::Tensor* order : orders) {
    if (order != nullptr) parts.push_back(order->slice(0, begin, end));
  }
  const at::Tensor rows = parts.size() > 1 ? at::cat(parts) : parts.empty() ? at::Tensor() : parts.front();
  const auto take = [&](const at::Tensor& all) {
    if (!rows.defined()) return all.slice(0, begin, end);
    const at::Tensor taken = all.index_select(0, rows);
    return batch.per_slot ? taken.unflatten(0, {static_cast<std::int64_t>(orders.size()), end - begin}) : taken;
  };
  for (const at::Tensor& input : train_.inputs) batch.inputs.push_back(take(input));
  batch.target = take(train_.target);
  return batch;
}

std::vector<EpochResult> Epochs::run_chunk(Array& array, int chunk, const Orders& orders) const {
  const int c = array.slots_per_chunk(), first = array.first_slot(chunk);
  std::vector<int> occupied;
  for (int b = first; b < std::min(first + c, array.width()); ++b) {
    if (array.occupied(b)) occupied.push_back(b);
  }
  const auto order_of = [&](int slot) {
    const bool here = slot < array.width() && array.occupied(slot);
    return options_.order.shuffle ? &orders.at(order_key(array, here ? slot : occupied.front())) : nullptr;
  };
  std::vector<const at::Tensor*> chunk_orders;
  for (int b = first; b < first + c; ++b) chunk_orders.push_back(order_of(b));
  if (std::adjacent_find(chunk_orders.begin(), chunk_orders.end(), std::not_equal_to<>()) == chunk_orders.end()) {
    chunk_orders.resize(1);
  }
  const std::int64_t steps = steps_per_epoch();
  const auto duration = static_cast<double>(recipe_.epochs);
  std::vector<double> rates(static_cast<std::size_t>(c), 0.0);
  at::Tensor losses;
  std::int64_t samples = 0;
  for (std::int64_t s = 0; s < steps; ++s) {
    for (const int b : occupied) {
      const SlotHyper& hyper = array.init_of(b).hyper;
      const bool per_step = hyper.schedule.per_step;
      const SlotProgress progress = array.progress(b);
      rates[static_cast<std::size_t>(b - first)] = learning_rate(
          hyper.schedule, hyper.optimizer.lr, per_step ? static_cast<double>(progress.step) : progress.epoch,
          per_step ? duration * static_cast<double>(steps) : duration);
    }
    const std::int64_t begin = s * recipe_.batch_size;
    const std::int64_t end = std::min<std::int64_t>(begin + recipe_.batch_size, train_.size);
    const at::Tensor loss =
        array.step(chunk, batch_at(chunk_orders, begin, end), rates) * static_cast<double>(end - begin);
    losses = losses.defined() ? losses.add_(loss) : loss;
    samples += end - begin;
  }
  array.finish_epoch(chunk);
  const at::Tensor mean = (losses / static_cast<double>(samples)).cpu();
  std::vector<std::map<std::string, double>> validation;
  if (validation_ != nullptr) validation = evaluate_chunk(array, chunk, *validation_);
  std::vector<EpochResult> results;
  for (const int b : occupied) {
    EpochResult result{b, array.progress(b).epoch, {{"train_loss", mean.data_ptr<double>()[b - first]}}};
    if (validation_ != nullptr) {
      for (const auto& [name, value] : validation[static_cast<std::size_t>(b - first)]) {
        result.metrics["val_" + name] = value;
      }
    }
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<EpochResult> Epochs::run(Array& array) const {
  const Orders orders = orders_for(array);
  std::mutex mutex;
  std::vector<EpochResult> results;
  array.for_each_chunk([&](int chunk) {
    std::vector<EpochResult> own = run_chunk(array, chunk, orders);
    const std::lock_guard lock(mutex);
    results.insert(results.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
  });
  std::sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return results;
}

std::vector<std::map<std::string, double>> Epochs::evaluate_chunk(Array& array, int chunk,
                                                                  const DeviceData& data) const {
  const int c = array.slots_per_chunk();
  MetricSums sums(recipe_, c == 1 ? 0 : c);
  for (std::int64_t begin = 0; begin < data.size; begin += evaluation_batch(recipe_)) {
    const std::int64_t end = std::min(begin + evaluation_batch(recipe_), data.size);
    Batch batch;
    for (const at::Tensor& input : data.inputs) batch.inputs.push_back(input.slice(0, begin, end));
    batch.target = data.target.slice(0, begin, end);
    at::Tensor target = batch.target;
    if (c > 1) {
      std::vector<std::int64_t> sizes = target.sizes().vec();
      sizes.insert(sizes.begin(), c);
      target = target.unsqueeze(0).expand(sizes);
    }
    sums.add(array.predict(chunk, batch), target);
  }
  return sums.result();
}

std::map<std::string, double> Epochs::evaluate(Array& array, int slot, const DeviceData& data,
                                               const std::string& prefix) const {
  const int chunk = slot / array.slots_per_chunk();
  std::vector<std::map<std::string, double>> all;
  array.for_each_chunk([&](int k) {  // on a worker, whose number of threads is the array's
    if (k == chunk) all = evaluate_chunk(array, chunk, data);
  });
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : all.at(static_cast<std::size_t>(slot - array.first_slot(chunk)))) {
    metrics[prefix + name] = value;
  }
  return metrics;
}

}  // namespace hfta::fusion
