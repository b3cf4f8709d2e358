#include "engine/fused/feature_cache.hpp"

#include <algorithm>

namespace hfta::engine {

const TaskData& FeatureCache::rest_of(const TaskData& whole, const std::shared_ptr<const fusion::SplitModel>& split) {
  const auto known = tasks_.find({&whole, split});
  if (known != tasks_.end()) return known->second;
  TaskData rest;
  rest.train = rest_of(whole.train, split);
  if (whole.validation) rest.validation = rest_of(*whole.validation, split);
  if (whole.test) rest.test = rest_of(*whole.test, split);
  return tasks_.emplace(std::tuple(&whole, split), std::move(rest)).first->second;
}

fusion::DeviceData FeatureCache::rest_of(const fusion::DeviceData& data,
                                         const std::shared_ptr<const fusion::SplitModel>& split) {
  std::shared_ptr<const fusion::FeatureSet>& features = sets_[{&data, split->key}];
  if (features == nullptr) {
    features = std::make_shared<const fusion::FeatureSet>(model(split), data.inputs, data.size, left_);
    left_ -= features->counts().kept_bytes;
  }
  return {fusion::rest_inputs(*split, data.inputs, features), data.target, data.size};
}

std::shared_ptr<fusion::FeatureModel> FeatureCache::model(const std::shared_ptr<const fusion::SplitModel>& split) {
  std::shared_ptr<fusion::FeatureModel>& model = models_[split->key];
  if (model == nullptr) model = std::make_shared<fusion::FeatureModel>(split, threads_);
  return model;
}

}  // namespace hfta::engine
