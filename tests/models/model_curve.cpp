// Trains an exported model a few steps as an array and writes what each slot did, for models_check.py to follow in
// PyTorch.
//   model_curve SPEC.json  ->  JSON on standard output
//   model_curve --optimizers  ->  the names of all optimizers
// `stages` of a specification: of the pipeline that trains the model. What is written is what rank 0 has.
// HFTA_TEST_DEVICE names the device, "cpu" without it. On a GPU steps are captured where they can be.
// SPEC.json holds one specification, or a list of them, whose results are a list. One of a list that is refused says
// so in its place: {"refused": message}; `plan_refused` is what `hfta-tune plan` would have said.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "fusion/array.hpp"
#include "fusion/collectives/shared_memory.hpp"
#include "fusion/compiled/compilation.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/exported.hpp"
#include "fusion/gpu.hpp"
#include "fusion/modes.hpp"
#include "fusion/runnable.hpp"
#include "fusion/staged.hpp"

namespace hfta::fusion {
namespace {

using nlohmann::json;

at::ScalarType type_of(const std::string& dtype) {
  if (dtype == "F32") return at::kFloat;
  if (dtype == "F64") return at::kDouble;
  if (dtype == "BOOL") return at::kBool;
  return at::kLong;
}

std::map<std::string, at::Tensor> read_tensors(const std::string& path) {
  const std::vector<std::byte> bytes = SystemFiles().read(path, std::size_t{1} << 32);
  std::map<std::string, at::Tensor> out;
  for (const TensorView& view : parse_safetensors(bytes).tensors) {
    const at::Tensor tensor = at::empty(view.shape, type_of(view.dtype));
    std::memcpy(tensor.data_ptr(), view.bytes.data(), view.bytes.size());
    out[view.name] = tensor;
  }
  return out;
}

Recipe recipe_of(const json& spec) {
  Recipe recipe;
  recipe.dtype = spec.at("dtype") == "float64" ? DType::kFloat64 : DType::kFloat32;
  for (const LossInfo& info : losses()) {
    if (spec.at("loss") == info.name) recipe.loss = info.kind;
  }
  const json options = spec.value("loss_options", json::object());
  recipe.loss_options.ignore_index = options.value("ignore_index", std::int64_t{-100});
  recipe.loss_options.class_weight = options.value("class_weight", std::vector<double>());
  recipe.loss_options.class_dim = options.value("class_dim", 1);
  recipe.loss_options.pos_weight = options.value("pos_weight", std::vector<double>());
  recipe.loss_options.log_input = options.value("log_input", true);
  recipe.loss_options.log_target = options.value("log_target", false);
  recipe.loss_options.weighted = spec.contains("further");
  for (const OptimizerInfo& info : optimizers()) {
    if (spec.at("optimizer") == info.name) recipe.optimizer = info.kind;
  }
  for (const json& patterns : spec.value("groups", json::array())) recipe.groups.push_back({patterns, ""});
  recipe.batch_size = spec.at("batch");
  recipe.clips = false;
  for (const json& slot : spec.at("slots")) {
    recipe.accumulates |= slot.contains("accumulate");
    recipe.clips |= slot.contains("clip_norm");
  }
  return recipe;
}

Lora lora_of(const json& spec) {
  Lora lora;
  lora.targets = spec.at("targets");
  lora.train = spec.value("train", std::vector<std::string>());
  lora.largest_rank = lora.rank = spec.at("rank");
  lora.alpha = spec.at("alpha");
  if (spec.contains("dropout")) lora.dropout = spec.at("dropout").get<double>();
  return lora;
}

ImportOptions options_of(const json& spec, DType dtype) {
  ImportOptions options;
  options.dtype = dtype;
  options.freeze = spec.value("freeze", std::vector<std::string>());
  options.fresh = spec.value("fresh", false);
  const json bound = spec.value("bind", json::object());
  for (const auto& [path, value] : bound.items()) options.bind.push_back({path, value, ""});
  if (spec.contains("output") && spec.at("output").is_number()) options.output = spec.at("output").get<std::int64_t>();
  if (spec.contains("output") && spec.at("output").is_string()) options.output = spec.at("output").get<std::string>();
  if (spec.contains("lora")) options.lora = lora_of(spec.at("lora"));
  options.own_loss = spec.at("loss") == name_of(Loss::kModel);
  options.further = spec.value("further", std::vector<std::string>());
  return options;
}

Graph graph_of(const json& spec, const ExportedModel& model, DType dtype) {
  const ImportOptions options = options_of(spec, dtype);
  if (!spec.contains("evaluation")) return model.graph(options);
  return model.graph(options, ExportedModel::read(spec.at("evaluation").get<std::string>()));
}

// Those of `numbers` that are given.
OptimizerHyper with_numbers(OptimizerHyper hyper, const json& numbers) {
  for (const HyperField& field : hyper_fields()) {
    if (!numbers.contains(field.name)) continue;
    std::visit([&](auto member) { numbers.at(field.name).get_to(hyper.*member); }, field.field);
  }
  return hyper;
}

// Per step.
Schedule schedule_of(const json& spec) {
  Schedule schedule;
  for (const ScheduleKind kind : {ScheduleKind::kStep, ScheduleKind::kCosine, ScheduleKind::kLinear}) {
    if (spec.value("name", "constant") == name_of(kind)) schedule.kind = kind;
  }
  schedule.step_size = spec.value("step_size", schedule.step_size);
  schedule.gamma = spec.value("gamma", schedule.gamma);
  schedule.eta_min = spec.value("eta_min", schedule.eta_min);
  schedule.start_factor = spec.value("start_factor", schedule.start_factor);
  schedule.total_iters = spec.value("total_iters", schedule.total_iters);
  return schedule;
}

SlotInit init_of(const json& slot, OptimizerKind kind, const Graph& graph) {
  SlotInit init;
  init.seed = slot.value("seed", 0);
  init.hyper.optimizer = with_numbers(default_hyper(kind), slot);
  for (const json& group : slot.value("groups", json::array())) {
    init.hyper.groups.push_back(with_numbers(init.hyper.optimizer, group));
  }
  init.hyper.loss = slot.value("loss_numbers", std::vector<double>());
  init.hyper.schedule = schedule_of(slot.value("schedule", json::object()));
  if (slot.contains("clip_norm")) init.hyper.clip_norm = slot.at("clip_norm").get<double>();
  init.hyper.accumulate = slot.value("accumulate", std::int64_t{1});
  for (std::size_t i = 0; i < graph.hypers.size(); ++i) {
    init.hyper.graph.push_back(slot.contains("hypers") ? slot.at("hypers").at(i).get<double>() : graph.hypers[i].value);
  }
  return init;
}

class Curves {
 public:
  Curves(const json& spec, const at::Device& device)
      : spec_(spec),
        device_(device),
        model_(ExportedModel::read(spec.at("model").get<std::string>())),
        recipe_(recipe_of(spec)),
        graph_(graph_of(spec, model_, recipe_.dtype)),
        data_(read_tensors(spec.at("data"))) {
    const auto steps = static_cast<std::size_t>(spec.value("steps", 0));
    batches_ = spec.value("batches", std::vector<std::int64_t>(steps, recipe_.batch_size));
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      arrays_.inputs.push_back(
          array_of(fmt::format("x{}", i), graph_.values[static_cast<std::size_t>(graph_.inputs[i])].dtype));
    }
    if (info_of(recipe_.loss).targets != Targets::kNone) arrays_.target = array_of("y", recipe_.dtype);
  }

  /// What `plan` would say against the model; "": nothing.
  [[nodiscard]] std::string plan_refused() const {
    const Samples all = first(batches_.at(0));
    const auto rows = [&](const SampleArray& array) { return all.of(array).cpu(); };
    Dataset data;
    if (info_of(recipe_.loss).targets != Targets::kNone) data.target = field_of("y", rows(all.target));
    data.size = all.size();
    for (const SampleArray& input : all.inputs) data.inputs.push_back(field_of("x", rows(input)));
    try {
      check_runnable(graph_, recipe_, init_of(spec_.at("slots").at(0), recipe_.optimizer, graph_).hyper, data,
                     at::kCPU);
      return "";
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kConfig) throw;
      return error.what();
    }
  }

  /// By as many ranks as `stages` says, which are threads.
  json run() const {
    const int stages = spec_.value("stages", 1);
    if (stages == 1) return run(nullptr);
    if (const std::string why = why_not_staged(graph_, recipe_, stages); !why.empty()) return {{"refused", why}};
    std::vector<std::unique_ptr<Collectives>> group = ranks_in_process(stages);
    std::vector<std::future<json>> ranks;
    for (std::unique_ptr<Collectives>& rank : group) {
      ranks.push_back(std::async(std::launch::async, [this, own = std::move(rank)] { return run(own.get()); }));
    }
    for (std::future<json>& rank : ranks) rank.wait();
    return ranks.front().get();
  }

 private:
  json run(Collectives* group) const {
    const json& slots = spec_.at("slots");
    Lowering lowering;
    Compilation compilation;
    lowering.chunk = spec_.at("chunk");
    if (spec_.value("compiled", false)) {
      lowering.executor = "compiled";
      if (!device_.is_cpu()) return {{"refused", "only CPUs have a compiler"}};
      compilation = compilation_of(graph_, recipe_);
      if (!compilation.why_not.empty()) return {{"refused", compilation.why_not}};
    }
    lowering.channels_last = spec_.value("channels_last", false);
    const json families = spec_.value("families", json::object());
    for (const auto& [family, way] : families.items()) lowering.families[family] = way;
    Array array(graph_, recipe_,
                {.lowering = lowering,
                 .width = static_cast<int>(slots.size()),
                 .study_seed = 1,
                 .device = device_,
                 .graphs = cuda_graphs(device_).backend,
                 .group = group,
                 .shares = Shares::kStages});
    for (std::size_t b = 0; b < slots.size(); ++b) {
      array.admit(static_cast<int>(b), init_of(slots[b], recipe_.optimizer, graph_));
    }
    if (spec_.value("gradients", false)) array.keep_gradients();
    json losses = json::array();
    const SystemClock clock;
    const double begin = clock.seconds();
    for (std::size_t s = 0; s < batches_.size(); ++s) losses.push_back(step(array, s));
    const double seconds = clock.seconds() - begin;
    const json gradients = spec_.value("gradients", false) ? gradients_of(array) : json();
    json predictions = json::array();
    for (std::size_t b = 0; b < slots.size(); ++b) predictions.push_back(predict(array, static_cast<int>(b)));
    if (spec_.contains("states")) {
      for (std::size_t b = 0; b < slots.size(); ++b) {
        SystemFiles().write_atomically(spec_.at("states").at(b).get<std::string>(), array.extract(static_cast<int>(b)));
      }
    }
    return {{"losses", losses},
            {"doubt", doubt_of_evaluation(graph_)},
            {"seconds", seconds},
            {"gradients", gradients},
            {"predictions", predictions},
            {"choices", array.choices()},
            {"captured", array.step_counts().captured},
            {"why_eager", array.step_counts().why_eager},
            {"by_torch", compilation.by_torch},
            {"shared_runs", array.shared_runs()},
            {"shared_bytes", array.shared_bytes()},
            {"bytes_per_slot", array.bytes_per_slot()}};
  }

  static Field field_of(const std::string& name, const at::Tensor& tensor) {
    Field field{name, tensor.sizes().slice(1).vec(), {}};
    const auto copy = [&]<typename T>(const at::Tensor& values) {
      field.data = std::vector<T>(values.data_ptr<T>(), values.data_ptr<T>() + values.numel());
    };
    const at::Tensor values = tensor.contiguous();
    if (values.scalar_type() == at::kFloat) {
      copy.operator()<float>(values);
    } else if (values.scalar_type() == at::kDouble) {
      copy.operator()<double>(values);
    } else {
      copy.operator()<std::int64_t>(values.to(at::kLong));
    }
    return field;
  }

  [[nodiscard]] Samples first(std::int64_t n) const { return samples(0, n); }

  /// The samples of a step.
  [[nodiscard]] Samples samples(std::size_t step) const {
    return samples(
        std::accumulate(batches_.begin(), batches_.begin() + static_cast<std::ptrdiff_t>(step), std::int64_t{0}),
        batches_[step]);
  }

  [[nodiscard]] Samples samples(std::int64_t begin, std::int64_t n) const {
    Samples out = arrays_;
    out.begin = begin;
    out.end = begin + n;
    return out;
  }

  /// All samples of an array; floating-point numbers have that type.
  [[nodiscard]] SampleArray array_of(const std::string& name, DType dtype) const {
    at::Tensor all = data_.at(name);
    if (at::isFloatingType(all.scalar_type()) && is_floating(dtype)) {
      all = all.to(dtype == DType::kFloat64 ? at::kDouble : at::kFloat);
    }
    return all.to(device_);
  }

  [[nodiscard]] std::vector<double> step(Array& array, std::size_t s) const {
    Batch batch{{samples(s)}};
    if (array.shares_layers()) array.prepare(batch.parts[0], SampleUse::kTraining);
    std::vector<double> losses(static_cast<std::size_t>(array.chunks() * array.slots_per_chunk()));
    array.for_each_chunk([&](int k) {
      std::vector<double> rates;
      for (int i = 0; i < array.slots_per_chunk(); ++i) {
        const int slot = array.first_slot(k) + i;
        const SlotHyper hyper = slot < array.width() ? array.init_of(slot).hyper : SlotHyper();
        const auto rate = [&](const OptimizerHyper& numbers) {
          return learning_rate(hyper.schedule, numbers.lr, static_cast<double>(s),
                               static_cast<double>(batches_.size()));
        };
        rates.push_back(rate(hyper.optimizer));
        for (const OptimizerHyper& group : hyper.groups) rates.push_back(rate(group));
        rates.resize(static_cast<std::size_t>((i + 1) * array.rates_per_slot()));
      }
      at::Tensor sums = array.fresh_losses(k).front();
      array.step(k, batch, rates, sums);
      const at::Tensor mean = (sums[0] / sums[1]).cpu();
      for (std::int64_t i = 0; i < mean.numel(); ++i) {
        losses[static_cast<std::size_t>(array.first_slot(k) + i)] = mean.data_ptr<double>()[i];
      }
    });
    losses.resize(static_cast<std::size_t>(array.width()));
    return losses;
  }

  // Of the last step, by name: of the first chunk's slots.
  static json gradients_of(const Array& array) {
    json found = json::object();
    for (const auto& [name, gradient] : array.gradients(0)) {
      const at::Tensor flat = gradient.to(at::kDouble).cpu().contiguous().flatten();
      found[name] = std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    }
    return found;
  }

  // The model's answer to the first samples, in evaluation mode.
  [[nodiscard]] std::vector<double> predict(Array& array, int slot) const {
    const int c = array.slots_per_chunk();
    const std::int64_t evaluated =
        spec_.contains("evaluated") ? spec_.at("evaluated").get<std::int64_t>() : batches_.at(0);
    at::Tensor output = array.predict(slot / c, first(evaluated));
    if (!output.defined()) return {};
    if (c > 1) output = output.select(0, slot % c);
    output = output.to(at::kDouble).cpu().contiguous().flatten();
    return {output.data_ptr<double>(), output.data_ptr<double>() + output.numel()};
  }

  const json& spec_;
  at::Device device_;
  ExportedModel model_;
  Recipe recipe_;
  Graph graph_;
  std::map<std::string, at::Tensor> data_;
  std::vector<std::int64_t> batches_;  // samples of each step
  Samples arrays_;                     // all samples
};

// A model that cannot even be read is refused by whoever reads it.
std::string plan_refused(const json& spec, const at::Device& device) {
  try {
    return Curves(spec, device).plan_refused();
  } catch (const Error& error) {
    return error.what();
  }
}

json result_of(const json& spec, const at::Device& device) {
  try {
    const Curves curves(spec, device);
    json result = curves.run();
    result["plan_refused"] = curves.plan_refused();
    return result;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kConfig) throw;
    return {{"refused", error.what()}, {"plan_refused", plan_refused(spec, device)}};
  }
}

json results_of(const json& specs, const at::Device& device) {
  if (!specs.is_array()) return Curves(specs, device).run();
  json results = json::array();
  for (const json& spec : specs) results.push_back(result_of(spec, device));
  return results;
}

// GPUs are looked for before anything is trained (cuda_devices()).
at::Device wanted_device() {
  const char* const name = std::getenv("HFTA_TEST_DEVICE");
  const at::Device device(name != nullptr ? name : "cpu");
  if (device.is_cuda() && cuda_devices() == 0) throw Error(ErrorKind::kDevice, "HFTA_TEST_DEVICE: found no GPU");
  return device;
}

}  // namespace
}  // namespace hfta::fusion

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: model_curve SPEC.json\n       model_curve --optimizers\n";
    return EXIT_FAILURE;
  }
  if (std::string(argv[1]) == "--optimizers") {
    for (const hfta::fusion::OptimizerInfo& optimizer : hfta::fusion::optimizers()) std::cout << optimizer.name << "\n";
    return EXIT_SUCCESS;
  }
  try {
    const nlohmann::json spec = nlohmann::json::parse(std::ifstream(argv[1]));
    std::cout << hfta::fusion::results_of(spec, hfta::fusion::wanted_device()).dump() << "\n";
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
