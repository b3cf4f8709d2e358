// Adapters of several ranks in one array: each slot is what it is alone.
#include "fusion/adapters.hpp"

#include <map>

#include "base/error.hpp"
#include "catch_after_torch.hpp"
#include "fusion/data/safetensors.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kLargest = 8;
const std::vector<std::int64_t> kRanks = {2, 8, 4};

// As an importer gives it: calls name their arguments.
Model adapted(OptimizerKind optimizer, std::int64_t largest) {
  Model model = mlp(DType::kFloat64, optimizer);
  for (Node& node : model.graph.nodes) {
    if (node.op == "aten::linear") node.names = {"input", "weight", "bias"};
  }
  Lora lora;
  lora.targets = {"layers.1", "layers.3"};
  lora.train = {"layers.5"};
  lora.largest_rank = lora.rank = largest;
  lora.dropout = 0.1;
  lora.where = "test";
  std::vector<std::string> names;
  for (const Weight& weight : model.graph.weights) names.push_back(weight.name);
  freeze_base(model.graph, lora, names);
  insert_lora(model.graph, lora);
  return model;
}

SlotInit slot(const Model& model, int b) {
  SlotInit init = trial(model, b);
  const auto rank = static_cast<double>(kRanks.at(static_cast<std::size_t>(b)));
  init.hyper.graph = {rank, (4 + b) / rank, 0.1 * b};
  if (b == 1) init.hyper.clip_norm = 0.01;
  return init;
}

using Tensors = std::map<std::string, at::Tensor>;

Tensors tensors_of(const StateBytes& state) {
  Tensors out;
  for (const TensorView& view : parse_safetensors(state).tensors) {
    if (view.dtype != "F64") continue;
    at::Tensor tensor = at::empty(view.shape, at::kDouble);
    std::copy(view.bytes.begin(), view.bytes.end(), static_cast<std::byte*>(tensor.data_ptr()));
    out[view.name] = tensor;
  }
  return out;
}

std::vector<StateBytes> trained(const Model& model, int chunk, const std::vector<int>& members) {
  Array array(model.graph, model.recipe,
              {.lowering = chunked(chunk), .width = static_cast<int>(members.size()), .study_seed = 5});
  for (std::size_t i = 0; i < members.size(); ++i) array.admit(static_cast<int>(i), slot(model, members[i]));
  for (int s = 0; s < 6; ++s) step_all(array, model.batch);
  std::vector<StateBytes> states;
  for (std::size_t i = 0; i < members.size(); ++i) states.push_back(array.extract(static_cast<int>(i)));
  return states;
}

// A slot's own part of what is padded.
at::Tensor used(const std::string& name, const at::Tensor& tensor, std::int64_t rank) {
  if (name.find("lora_A") != std::string::npos) return tensor.narrow(0, 0, rank);
  return name.find("lora_B") != std::string::npos ? tensor.narrow(1, 0, rank) : tensor;
}

// The rest of it.
at::Tensor padding(const std::string& name, const at::Tensor& tensor, std::int64_t rank) {
  if (name.find("lora_A") != std::string::npos) return tensor.narrow(0, rank, tensor.size(0) - rank);
  if (name.find("lora_B") != std::string::npos) return tensor.narrow(1, rank, tensor.size(1) - rank);
  return tensor.new_empty({0});
}

}  // namespace

TEST_CASE("slots of several ranks train as they do alone, and padding stays zero", "[numeric][adapters]") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  for (const OptimizerInfo& info : optimizers()) {
    INFO(info.name << ", chunk " << chunk);
    const Model model = adapted(info.kind, kLargest);
    const std::vector<StateBytes> together = trained(model, chunk, {0, 1, 2});
    for (int b = 0; b < 3; ++b) {
      const std::int64_t rank = kRanks[static_cast<std::size_t>(b)];
      const Model narrow = adapted(info.kind, rank);
      const Tensors all = tensors_of(together[static_cast<std::size_t>(b)]);
      const Tensors alone = tensors_of(trained(narrow, chunk, {b}).front());
      REQUIRE(all.size() == alone.size());
      for (const auto& [name, tensor] : all) {
        INFO(name << " of slot " << b);
        CHECK(relative_difference(used(name, tensor, rank), alone.at(name)) <= 1e-12);
        if (name.find("optimizer.") == 0) continue;  // rprop keeps the steps of elements that do not move
        CHECK(padding(name, tensor, rank).count_nonzero().item<std::int64_t>() == 0);
      }
    }
  }
}

TEST_CASE("a slot's bits do not depend on its neighbours' ranks", "[numeric][adapters]") {
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  const Model model = adapted(OptimizerKind::kAdamW, kLargest);
  const StateBytes first = trained(model, chunk, {0, 1, 2}).front();
  CHECK(trained(model, chunk, {0, 2, 1}).front() == first);
  CHECK(trained(model, chunk, {0}).front() == first);
  CHECK(trained(model, chunk, {2, 0}).back() == first);
}

TEST_CASE("an optimizer that moves zeros is known", "[adapters]") {
  for (const OptimizerInfo& info : optimizers()) {
    INFO(info.name);
    CHECK(keeps_zeros(info.kind, default_hyper(info.kind)));
    OptimizerHyper decayed = default_hyper(info.kind);
    decayed.weight_decay = 0.1;
    CHECK(keeps_zeros(info.kind, decayed));
  }
  OptimizerHyper hyper = default_hyper(OptimizerKind::kAdam);
  hyper.eps = 0;
  CHECK_FALSE(keeps_zeros(OptimizerKind::kAdam, hyper));
  CHECK_FALSE(keeps_zeros(OptimizerKind::kAdamW, hyper));
  CHECK_FALSE(keeps_zeros(OptimizerKind::kRmsprop, hyper));
}

TEST_CASE("a slot that uses more than there is is refused", "[adapters]") {
  const Model model = adapted(OptimizerKind::kSgd, kLargest);
  Array array(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  for (const double rank : {0.0, 2.5, 9.0}) {
    SlotInit init = slot(model, 0);
    init.hyper.graph[0] = rank;
    CHECK_THROWS_AS(array.admit(0, init), Error);
    CHECK_FALSE(array.occupied(0));
  }
}

TEST_CASE("a slot's weights are its state dict: of its own rank, with the frozen base, as copies") {
  const Model model = adapted(OptimizerKind::kAdamW, kLargest);
  for (const int chunk : {1, 3}) {
    Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = 4, .study_seed = 5});
    for (int b = 0; b < 3; ++b) array.admit(b, slot(model, b));
    step_all(array, model.batch);
    for (int b = 0; b < 3; ++b) {
      const Tensors saved = tensors_of(array.extract(b));
      const auto weights = array.weights(b);
      REQUIRE(weights.size() == array.weights(0).size());
      std::size_t owned = 0;
      for (const auto& [name, tensor] : weights) {
        INFO(name << ", slot " << b << ", chunk " << chunk);
        const auto own = saved.find(name);
        owned += own != saved.end() ? 1 : 0;
        if (own != saved.end()) CHECK(at::equal(tensor, used(name, own->second, kRanks[static_cast<std::size_t>(b)])));
      }
      CHECK(owned > 0);
      CHECK(owned < weights.size());  // slots share the base
      weights.front().second.zero_();
      CHECK(array.weights(b).front().second.count_nonzero().item<std::int64_t>() > 0);
    }
    CHECK_THROWS_WITH(array.weights(3), Catch::Contains("slot 3 is empty"));
  }
}

}  // namespace hfta::fusion::testing
