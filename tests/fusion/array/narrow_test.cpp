// A frozen base in half precision: held as the file has it, and trained with as if it were held in float32.
#include <cstring>

#include "catch_after_torch.hpp"
#include "fusion/exported.hpp"
#include "fusion/slots/first_values.hpp"
#include "models.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kSamples = 6, kWords = 6, kVocabulary = 256;

Model model_of(Graph graph, DType dtype) {
  Model model{"half", std::move(graph), {}, {}};
  model.recipe.dtype = dtype;
  model.recipe.optimizer = OptimizerKind::kAdamW;
  model.recipe.batch_size = kSamples;
  model.batch.parts = {{{counted_labels(kSamples * kWords, kVocabulary, 3).reshape({kSamples, kWords})},
                        counted_labels(kSamples, kVocabulary, 4)}};
  return model;
}

Graph narrow_graph(DType dtype) {
  ImportOptions options;
  options.dtype = dtype;
  options.freeze = {"embed", "body"};
  return ExportedModel::read(hfta::testing::source_folder() / "tests/fusion/pt2/golden/half.pt2").graph(options);
}

StoredTensor in_float(const StoredTensor& tensor) {
  StoredTensor wide{tensor.shape, DType::kFloat32, std::vector<std::byte>(2 * tensor.bytes.size())};
  for (std::size_t i = 0; i < tensor.bytes.size() / 2; ++i) {
    std::memcpy(wide.bytes.data() + 4 * i + 2, tensor.bytes.data() + 2 * i, 2);  // bfloat16 is a float's upper half
  }
  return wide;
}

// The same calls over the same numbers, held in the type that is computed in.
Graph wide_graph(DType dtype) {
  Graph graph = narrow_graph(dtype);
  for (Value& value : graph.values) {
    if (value.dtype == DType::kBFloat16) value.dtype = dtype;
  }
  for (Weight& weight : graph.weights) {
    if (weight.dtype != DType::kBFloat16) continue;
    weight.dtype = dtype;
    weight.stored = std::make_shared<const StoredTensor>(in_float(*weight.stored));
  }
  return graph;
}

struct Trained {
  std::vector<StateBytes> states;
  std::vector<double> losses;
  std::int64_t shared_bytes = 0;
};

Trained train(const Model& model, int chunk) {
  constexpr int kSlots = 3;
  Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = kSlots, .study_seed = 5});
  for (int b = 0; b < kSlots; ++b) array.admit(b, trial(model, b));
  Trained trained;
  for (int s = 0; s < 4; ++s) trained.losses = step_all(array, model.batch);
  for (int b = 0; b < kSlots; ++b) trained.states.push_back(array.extract(b));
  trained.shared_bytes = array.shared_bytes();
  return trained;
}

}  // namespace

TEST_CASE("a frozen base of bfloat16 is held so, and trains with the bits of the same numbers in float32",
          "[numeric][adapters]") {
  const DType dtype = GENERATE(DType::kFloat32, DType::kFloat64);
  const int chunk = GENERATE(as<int>(), kCompiled, 1, 3);
  CAPTURE(name_of(dtype), chunk);
  const Trained narrow = train(model_of(narrow_graph(dtype), dtype), chunk);
  const Trained wide = train(model_of(wide_graph(dtype), dtype), chunk);
  CHECK(narrow.losses == wide.losses);
  CHECK((narrow.states == wide.states));       // bytes cannot be shown
  const std::int64_t matrices = 2 * 256 * 64;  // embed.weight and body.weight
  CHECK(wide.shared_bytes - narrow.shared_bytes == matrices * (size_of(dtype) - 2));
}

TEST_CASE("frozen weights lie where they were read, once for all arrays", "[adapters]") {
  const Model model = model_of(narrow_graph(DType::kFloat32), DType::kFloat32);
  const long before = model.graph.weights.front().stored.use_count();
  const Array one(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  const Array other(model.graph, model.recipe, {.lowering = chunked(1), .width = 1, .study_seed = 5});
  // Each array has a graph, and a tensor in the stored memory.
  CHECK(model.graph.weights.front().stored.use_count() >= before + 4);
  for (const Weight& weight : model.graph.weights) {
    const at::Tensor values = first_values(weight, CountedRandom(0, Stream::kInit, 0), {});
    CHECK(values.const_data_ptr() == static_cast<const void*>(weight.stored->bytes.data()));
  }
}

}  // namespace hfta::fusion::testing
