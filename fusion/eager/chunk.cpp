#include "fusion/eager/chunk.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace hfta::fusion {

Chunk::Chunk(const ExecutorModel& model, int first, int slots) {
  const std::size_t states = info_of(model.recipe.optimizer).states.size();
  for (std::size_t i = 0; i < model.graph.weights.size(); ++i) {
    if (!model.owned[i]) {
      leaves.push_back(model.store.weight(i));
      continue;
    }
    const at::Tensor rows = model.store.weight(i).narrow(0, first, slots);
    at::Tensor leaf = (slots == 1 ? rows.select(0, 0) : rows).detach();
    if (model.graph.weights[i].trained) {
      leaf.requires_grad_(true);
      trained.push_back(i);
      ParameterSlots p;
      p.weight = rows;
      p.group = static_cast<std::size_t>(model.group_of[i]);
      if (model.recipe.accumulates) p.accumulated = model.store.gradient(i).narrow(0, first, slots);
      for (std::size_t s = 0; s < states; ++s)
        p.states[s] = model.store.state(model.phase, i, s).narrow(0, first, slots);
      parameters.push_back(std::move(p));
    }
    leaves.push_back(std::move(leaf));
  }
  if (model.recipe.accumulates) gradient_weight = model.store.gradient_weight().narrow(0, first, slots);
}

std::vector<ParameterSlots> Chunk::take_gradients(bool keep) {
  std::vector<ParameterSlots> reached;
  kept_gradients.assign(trained.size(), at::Tensor());
  for (std::size_t k = 0; k < trained.size(); ++k) {
    at::Tensor& leaf = leaves[trained[k]];
    if (!leaf.grad().defined()) continue;
    ParameterSlots p = parameters[k];
    p.gradient = leaf.grad().resolve_neg().contiguous().view(p.weight.sizes());
    if (keep) kept_gradients[k] = p.gradient.clone();
    leaf.mutable_grad().reset();
    reached.push_back(std::move(p));
  }
  return reached;
}

void Chunk::drop_gradients() {
  for (const std::size_t i : trained) leaves[i].mutable_grad().reset();
}

}  // namespace hfta::fusion
