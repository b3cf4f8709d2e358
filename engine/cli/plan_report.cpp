#include "engine/cli/plan_report.hpp"

#include <algorithm>

namespace hfta::engine {

std::vector<const ModelFacts*> models_of(const Plan& plan) {
  std::vector<const ModelFacts*> models;
  for (const Partition& p : plan.partitions) {
    for (const std::optional<ModelFacts>* facts : {&p.plan.model, &p.plan.evaluation}) {
      if (!*facts) continue;
      const bool known = std::any_of(models.begin(), models.end(),
                                     [&](const ModelFacts* model) { return model->file == (*facts)->file; });
      if (!known) models.push_back(&**facts);
    }
  }
  return models;
}

}  // namespace hfta::engine
