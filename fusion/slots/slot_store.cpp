#include "fusion/slots/slot_store.hpp"

#include <ATen/ATen.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/graph/reads.hpp"
#include "fusion/optimizers/slot_step.hpp"
#include "fusion/slots/first_values.hpp"
#include "fusion/slots/scalar_type.hpp"

namespace hfta::fusion {
namespace {

std::vector<std::int64_t> with_slots(const Shape& shape, int slots) {
  std::vector<std::int64_t> out = {slots};
  out.insert(out.end(), shape.begin(), shape.end());
  return out;
}

// Memory from which, and to which, a GPU copies beside its other work.
at::Tensor staging(const at::Tensor& like, const at::Device& device) {
  return at::empty(like.sizes(), like.options().device(at::kCPU).pinned_memory(!device.is_cpu()));
}

void wait_for(const at::Device& device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  guard.synchronizeStream(guard.getStream(device));
}

}  // namespace

SlotStore::SlotStore(const Graph& graph, std::vector<bool> owned, std::vector<Trained> trained, bool accumulates,
                     int slots, const at::Device& device, std::size_t bounds, std::vector<bool> held)
    : graph_(graph),
      owned_(std::move(owned)),
      held_(std::move(held)),
      trained_(std::move(trained)),
      slots_(slots),
      device_(device) {
  const std::vector<bool> read = weights_read(graph);
  std::vector<double> defaults;  // a weight that is padded is not shared, unless nothing reads it
  for (const Hyper& hyper : graph.hypers) defaults.push_back(hyper.value);
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const Weight& weight = graph.weights[i];
    const auto options = at::TensorOptions().dtype(scalar_type(weight.dtype)).device(device);
    const bool unread = !read[i] && !owned_[i] && trained_.size() == 1;  // another phase's graph may read it
    if (unread || !this->held(i)) {
      weights_.push_back(at::empty({0}, options));
      continue;
    }
    if (!owned_[i]) {
      weights_.push_back(first_values(weight, CountedRandom(0, Stream::kInit, 0, i), defaults).to(options));
      continue;
    }
    weights_.push_back(at::zeros(with_slots(weight.shape, slots), options));
  }
  for (std::size_t p = 0; p < trained_.size(); ++p) {
    auto& of_phase = states_.emplace_back(weights_.size());
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const std::size_t count = this->held(i) ? states_of(p, i) : 0;
      for (std::size_t s = 0; s < count; ++s) of_phase[i].push_back(at::zeros_like(weights_[i]));
    }
  }
  if (bounds > 0) {
    bounds_ =
        at::zeros({slots, static_cast<std::int64_t>(bounds)}, at::TensorOptions().dtype(at::kDouble).device(device));
  }
  if (!accumulates) return;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const bool summed = owned_[i] && trained_.front().weights[i] && this->held(i);
    gradients_.push_back(summed ? at::zeros_like(weights_[i]) : at::Tensor());
  }
  gradient_weight_ = at::zeros({slots}, at::TensorOptions().dtype(at::kDouble).device(device));
}

std::size_t SlotStore::states_of(std::size_t phase, std::size_t i) const {
  return owned_[i] && trained_[phase].weights[i] ? info_of(trained_[phase].optimizer).states.size() : 0;
}

at::Tensor SlotStore::state(std::size_t phase, std::size_t i, std::size_t s) const {
  const std::vector<at::Tensor>& states = states_.at(phase)[i];
  return s < states.size() ? states[s] : at::Tensor();
}

at::Tensor SlotStore::gradient(std::size_t i) const { return gradients_.empty() ? at::Tensor() : gradients_[i]; }

std::vector<SlotStore::Named> SlotStore::named(bool gradients) const {
  std::vector<Named> out;
  const auto add = [&](std::string name, std::size_t i, const at::Tensor& tensor) {
    const Weight& weight = graph_.weights[i];
    out.push_back({std::move(name), weight.dtype, weight.shape, held(i) ? tensor : at::Tensor()});
  };
  const auto add_numbers = [&](const char* name, const at::Tensor& tensor) {
    out.push_back({name, DType::kFloat64, tensor.sizes().slice(1).vec(), tensor});
  };
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (owned_[i]) add(graph_.weights[i].name, i, weights_[i]);
  }
  for (std::size_t p = 0; p < states_.size(); ++p) {
    const std::vector<const char*>& names = info_of(trained_[p].optimizer).states;
    const std::string prefix = p == 0 ? "optimizer" : fmt::format("optimizer.phase{}", p);
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      for (std::size_t s = 0; s < states_of(p, i); ++s) {
        add(fmt::format("{}.{}.{}", prefix, names[s], graph_.weights[i].name), i, state(p, i, s));
      }
    }
  }
  if (bounds_.defined()) add_numbers("optimizer.bounds", bounds_);
  if (!gradients || gradients_.empty()) return out;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const bool summed = owned_[i] && trained_.front().weights[i];
    if (summed) add("optimizer.gradient." + graph_.weights[i].name, i, gradients_[i]);
  }
  add_numbers("optimizer.gradient_weight", gradient_weight_);
  return out;
}

void SlotStore::initialise(int slot, std::uint64_t study_seed, std::uint64_t trial_seed,
                           std::span<const double> hypers) {
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!owned_[i] || !held(i)) continue;
    weights_[i].select(0, slot).copy_(
        first_values(graph_.weights[i],
                     CountedRandom(study_seed, Stream::kInit, trial_seed, static_cast<std::uint64_t>(i)), hypers));
  }
  for (const auto& phase : states_) {
    for (const auto& states : phase) {
      for (const at::Tensor& state : states) state.select(0, slot).zero_();
    }
  }
  if (bounds_.defined()) bounds_.select(0, slot).zero_();
  forget_gradients(slot);
}

void SlotStore::forget_gradients(int slot) {
  for (const at::Tensor& sum : gradients_) {
    if (sum.defined()) sum.select(0, slot).zero_();
  }
  if (gradient_weight_.defined()) gradient_weight_.select(0, slot).zero_();
}

std::vector<std::byte> SlotStore::save(int slot, const std::map<std::string, std::string>& counters,
                                       bool between_steps) const {
  std::vector<at::Tensor> rows;  // keep host copies alive until the bytes are written
  std::vector<TensorView> views;
  std::vector<Named> all = named(!between_steps);
  std::erase_if(all, [](const Named& one) { return !one.tensor.defined(); });
  for (const auto& [name, dtype, shape, tensor] : all) {
    const at::Tensor row = tensor.select(0, slot);
    rows.push_back(device_.is_cpu() ? row.contiguous() : staging(row, device_).copy_(row, /*non_blocking=*/true));
  }
  wait_for(device_);  // once for all of them
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& [name, dtype, shape, tensor] = all[i];
    const at::Tensor& row = rows[i];
    views.push_back({name,
                     safetensors_name(dtype),
                     row.sizes().vec(),
                     {static_cast<const std::byte*>(row.const_data_ptr()), row.nbytes()}});
  }
  return write_safetensors(views, counters);
}

std::vector<std::byte> SlotStore::joined(std::span<const std::vector<std::byte>> parts) const {
  std::vector<SafetensorsFile> files;
  std::map<std::string, const TensorView*> found;
  for (const std::vector<std::byte>& part : parts) files.push_back(parse_safetensors(part));
  for (const SafetensorsFile& file : files) {
    for (const TensorView& view : file.tensors) found.try_emplace(view.name, &view);
  }
  std::vector<TensorView> views;
  for (const Named& one : named(true)) {
    if (const auto at = found.find(one.name); at != found.end()) views.push_back(*at->second);
  }
  return write_safetensors(views, files.front().metadata);
}

std::map<std::string, std::string> SlotStore::load(int slot, std::span<const std::byte> bytes) {
  const SafetensorsFile file = parse_safetensors(bytes);
  const bool between_steps = file.tensors.size() == named(false).size();
  const auto all = named(!between_steps);
  if (file.tensors.size() != all.size()) {
    throw Error(ErrorKind::kStorage,
                fmt::format("slot state: found {} tensors, wanted {}", file.tensors.size(), all.size()));
  }
  std::vector<const TensorView*> sources;
  for (const auto& [name, dtype, shape, tensor] : all) {
    const auto found = std::find_if(file.tensors.begin(), file.tensors.end(),
                                    [&n = name](const TensorView& view) { return view.name == n; });
    if (found == file.tensors.end() || found->shape != shape || found->dtype != safetensors_name(dtype)) {
      throw Error(ErrorKind::kStorage,
                  fmt::format("slot state: {}: found {}, wanted {} {}", name,
                              found == file.tensors.end() ? "none" : found->dtype + " " + to_text(found->shape),
                              safetensors_name(dtype), to_text(shape)));
    }
    sources.push_back(&*found);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].tensor.defined()) continue;
    const at::Tensor there = all[i].tensor.select(0, slot), row = staging(there, device_);
    if (!sources[i]->bytes.empty()) {
      std::memcpy(row.data_ptr(), sources[i]->bytes.data(), sources[i]->bytes.size());
    }
    there.copy_(row, /*non_blocking=*/true);
  }
  if (between_steps) forget_gradients(slot);
  return file.metadata;
}

void SlotStore::resize(int slots) {
  const int kept = std::min(slots, slots_);
  const auto resized = [&](const at::Tensor& old) {
    std::vector<std::int64_t> shape = old.sizes().vec();
    shape[0] = slots;
    at::Tensor fresh = at::zeros(shape, old.options());
    fresh.narrow(0, 0, kept).copy_(old.narrow(0, 0, kept));
    return fresh;
  };
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (owned_[i] && held(i)) weights_[i] = resized(weights_[i]);
  }
  for (auto& phase : states_) {
    for (auto& states : phase) {
      for (at::Tensor& state : states) state = resized(state);
    }
  }
  for (at::Tensor& sum : gradients_) {
    if (sum.defined()) sum = resized(sum);
  }
  for (at::Tensor* one : {&gradient_weight_, &bounds_}) {
    if (one->defined()) *one = resized(*one);
  }
  slots_ = slots;
}

std::int64_t SlotStore::bytes_per_slot() const {
  std::int64_t total = 0;
  for (const Named& one : named(true)) {
    if (one.tensor.defined()) total += static_cast<std::int64_t>(one.tensor.nbytes()) / slots_;
  }
  return total;
}

std::int64_t SlotStore::shared_bytes() const {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!owned_[i]) total += static_cast<std::int64_t>(weights_[i].nbytes());
  }
  return total;
}

}  // namespace hfta::fusion
