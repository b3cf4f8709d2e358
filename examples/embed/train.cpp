// One model, trained in four slots side by side with a learning rate each. Prints the curve of every slot.
//   train [MODEL.pt2]     a model of one float input that tells two classes apart; none: a small one made here
#include <cstdio>
#include <exception>
#include <string>

#include "base/random.hpp"
#include "fusion/epochs.hpp"
#include "fusion/exported.hpp"
#include "fusion/layers.hpp"

using namespace hfta::fusion;

static Graph model(int argc, char** argv) {
  if (argc > 1) return ExportedModel::read(argv[1]).graph(ImportOptions());
  const std::vector<LayerSpec> layers = {
      {.kind = "linear", .positional = {16, 32}}, {.kind = "relu"}, {.kind = "linear", .positional = {32, 2}}};
  return build_graph(layers, {kBatch, 16}, DType::kFloat32);
}

// Noise; the class says whether a sample's sum is positive.
static Dataset noise(const Graph& graph, std::int64_t size) {
  const Shape& input = graph.values[graph.inputs.at(0)].shape;
  Field x{"x", Shape(input.begin() + 1, input.end()), {}};
  std::vector<float> numbers;
  std::vector<std::int64_t> classes;
  hfta::CountedRandom random(/*seed=*/1, hfta::Stream::kSample, 0);
  for (std::int64_t i = 0; i < size; ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < x.stride(); ++k) sum += numbers.emplace_back(static_cast<float>(random.normal()));
    classes.push_back(sum > 0 ? 1 : 0);
  }
  x.data = numbers;
  return {{x}, {"y", {}, classes}, size};
}

static void train(const Graph& graph) {
  const std::vector<double> rates = {0.03, 0.01, 0.003, 0.001};
  const int width = static_cast<int>(rates.size());
  const int batch = graph.fixed_batch > 0 ? static_cast<int>(graph.fixed_batch) : 32;
  const Recipe recipe{.optimizer = OptimizerKind::kAdam, .batch_size = batch, .epochs = 6};
  Array array(graph, recipe, {.lowering = Lowering{.chunk = width}, .width = width, .study_seed = 1});
  for (int i = 0; i < width; ++i) array.admit(i, {.seed = 1, .hyper = {.optimizer = {.lr = rates[i]}}});

  const DeviceData data = to_device(noise(graph, 512), graph, recipe, at::kCPU);
  const Epochs epochs(recipe,
                      {.fixed_batch = graph.fixed_batch, .largest_batch = graph.largest_batch, .limits = graph.limits},
                      data, nullptr);
  std::vector<std::string> curves(rates.size());
  for (int epoch = 0; epoch < recipe.epochs; ++epoch) {
    for (const EpochResult& it : epochs.run(array))
      curves[it.slot] += " " + std::to_string(it.metrics.at("train_loss"));
  }
  for (int i = 0; i < width; ++i) std::printf("lr %g: train_loss%s\n", rates[i], curves[i].c_str());
}

int main(int argc, char** argv) try { train(model(argc, argv)); } catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
