#include "engine/driver/arrays/device_arrays.hpp"

#include <algorithm>
#include <utility>

namespace hfta::engine {

DeviceArrays::DeviceArrays(std::vector<Trainer*> trainers) : trainers_(std::move(trainers)), arrays_(trainers_.size()) {
  for (const Trainer* trainer : trainers_) facts_.push_back(trainer->device_facts());
}

int DeviceArrays::idle() const {
  int idle = 0;
  for (std::size_t i = 0; i < size(); ++i) idle += !retired(i) && arrays_[i] == nullptr ? 1 : 0;
  return idle;
}

bool DeviceArrays::any_at_work() const {
  return std::any_of(arrays_.begin(), arrays_.end(),
                     [](const auto& array) { return array != nullptr && array->occupied() > 0; });
}

}  // namespace hfta::engine
