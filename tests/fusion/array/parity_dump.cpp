// Writes what fused arrays computed, for parity_check.py to follow step by step in PyTorch.
//   parity_dump FOLDER  ->  FOLDER/<model>-<optimizer>-<dtype, or bfloat16>-<chunk>.safetensors
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "fusion/data/safetensors.hpp"
#include "models.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr int kWidth = 4, kSlot = 2, kBatches = 5, kSteps = 100;
constexpr std::int64_t kSamples = 6;

class Dump {
 public:
  void add(const std::string& name, const at::Tensor& tensor) {
    kept_.push_back(tensor.contiguous().clone());
    const at::Tensor& t = kept_.back();
    const char* dtype = t.scalar_type() == at::kFloat ? "F32" : t.scalar_type() == at::kDouble ? "F64" : "I64";
    views_.push_back({name, dtype, t.sizes().vec(), {static_cast<const std::byte*>(t.const_data_ptr()), t.nbytes()}});
  }

  void add_state(const std::string& prefix, const StateBytes& state) {
    for (const TensorView& tensor : parse_safetensors(state).tensors) {
      const at::Tensor copy = at::empty(tensor.shape, tensor.dtype == "F32" ? at::kFloat : at::kDouble);
      std::copy(tensor.bytes.begin(), tensor.bytes.end(), static_cast<std::byte*>(copy.data_ptr()));
      add(prefix + tensor.name, copy);
    }
  }

  void write(const std::string& path, const std::map<std::string, std::string>& metadata) const {
    const std::vector<std::byte> bytes = write_safetensors(views_, metadata);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

 private:
  std::vector<at::Tensor> kept_;
  std::vector<TensorView> views_;
};

std::map<std::string, std::string> metadata_of(const SlotInit& init) {
  const OptimizerHyper& h = init.hyper.optimizer;
  const auto text = [](double v) { return std::to_string(v); };
  return {{"lr", text(h.lr)},
          {"weight_decay", text(h.weight_decay)},
          {"momentum", text(h.momentum)},
          {"nesterov", h.nesterov ? "1" : "0"},
          {"label_smoothing", text(init.hyper.loss.empty() ? 0 : init.hyper.loss[0])}};
}

void dump(const Model& model, const std::string& name, int chunk, const std::string& folder) {
  Array array(model.graph, model.recipe, {.lowering = chunked(chunk), .width = kWidth, .study_seed = 5});
  array.keep_gradients();
  for (int b = 0; b < kWidth; ++b) array.admit(b, trial(model, b));
  std::vector<std::int64_t> shape = model.batch.parts[0].inputs[0].stored().sizes().vec();
  shape[0] = kBatches * kSamples;
  const at::Tensor x = counted_normal(shape, model.recipe.dtype, 31);
  const at::Tensor y =
      counted_labels(shape[0], model.graph.values[static_cast<std::size_t>(model.graph.outputs[0])].shape[1], 32);
  Dump out;
  out.add("x", x);
  out.add("y", y);
  out.add_state("init.", array.extract(kSlot));
  std::vector<double> losses;
  for (int s = 0; s < kSteps; ++s) {
    const std::int64_t begin = s % kBatches * kSamples;
    const Batch batch{{{{x.narrow(0, begin, kSamples)}, y.narrow(0, begin, kSamples)}}};
    losses.push_back(step_all(array, batch)[kSlot]);
    if (s > 0) continue;
    for (const auto& [weight, gradient] : array.gradients(kSlot / chunk)) {
      out.add("grad." + weight, gradient.select(0, kSlot % chunk));
    }
    out.add_state("one.", array.extract(kSlot));
  }
  out.add_state("end.", array.extract(kSlot));
  out.add("losses", at::tensor(losses, at::kDouble));
  out.write(folder + "/" + name + ".safetensors", metadata_of(trial(model, kSlot)));
}

}  // namespace
}  // namespace hfta::fusion::testing

int main(int argc, char** argv) {
  using namespace hfta::fusion;
  using namespace hfta::fusion::testing;
  if (argc != 2) {
    std::cerr << "usage: parity_dump FOLDER\n";
    return EXIT_FAILURE;
  }
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam, OptimizerKind::kAdamW}) {
      for (const int chunk : {1, 4}) {
        const std::string suffix =
            std::string("-") + name_of(kind) + "-" + name_of(dtype) + "-" + std::to_string(chunk);
        dump(conv_net(dtype, kind), "conv" + suffix, chunk, argv[1]);
        dump(mlp(dtype, kind), "mlp" + suffix, chunk, argv[1]);
      }
    }
  }
  for (const int chunk : {1, 4}) {
    const std::string suffix = "-sgd-bfloat16-" + std::to_string(chunk);
    dump(in_bfloat16(conv_net(DType::kFloat32, OptimizerKind::kSgd)), "conv" + suffix, chunk, argv[1]);
    dump(in_bfloat16(mlp(DType::kFloat32, OptimizerKind::kSgd)), "mlp" + suffix, chunk, argv[1]);
  }
  return EXIT_SUCCESS;
}
