#pragma once
/// The tensors that an archive stores.

#include <map>
#include <memory>
#include <string>

#include "fusion/graph.hpp"
#include "fusion/pt2/archive.hpp"
#include "fusion/pt2/schema.hpp"

namespace hfta::fusion::pt2 {

struct StoredWeight {
  std::shared_ptr<const StoredTensor> tensor;
  bool requires_grad = false;
  std::string identity;  ///< Equal for two names of one tensor: member, offset, sizes and strides.
};

/// Every tensor that `config` ("data/weights/model_weights_config.json") names, by its name, made contiguous.
/// Throws Error{kConfig}: pickled ones, those that reach beyond their bytes, and together more bytes than an archive of
/// this size holds.
[[nodiscard]] std::map<std::string, StoredWeight> read_weights(const Archive& archive, const std::string& config);

}  // namespace hfta::fusion::pt2
