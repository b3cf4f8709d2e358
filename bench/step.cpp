// Training steps of an exported model as an array of B slots, as hfta-tune makes them: a peer of bench/run, whose
// protocol is written down in bench/peers/protocol.py.
//   hfta_bench_step --model model.pt2 --data data.npz --batch N --rates LR,LR,... [options]
//   hfta_bench_step --model model.pt2 --data data.npz --batch N --profile
//   hfta_bench_step --model model.pt2 --data data.npz --batch N --rates LR,LR,... --device cuda --trace epoch.json
#include <ATen/Version.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <torch/csrc/autograd/profiler_kineto.h>
#include <unistd.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "fusion/array.hpp"
#include "fusion/cpu/kernels/xsmm.hpp"
#include "fusion/epochs.hpp"
#include "fusion/exported.hpp"
#include "fusion/gpu.hpp"
#include "fusion/measure.hpp"
#include "fusion/simd/multiversion.hpp"
#include "fusion/ways.hpp"
#include "profile.hpp"

namespace hfta::fusion {
namespace {

using nlohmann::json;

constexpr int kCheckedSteps = 10;
constexpr std::int64_t kEpochsInOne = 16;  // on a GPU
constexpr double kPlenty = 1e9;            // slot steps that are said to follow, so that every way to run is measured

struct Setting {
  std::string model, data, loss, lowering, device, trace;
  int batch = 1, threads = 1, profiled = 0;
  std::vector<double> rates;
};

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  std::istringstream stream(text);
  for (std::string one; std::getline(stream, one, ',');) numbers.push_back(std::stod(one));
  return numbers;
}

Loss loss_named(const std::string& name) {
  for (const LossInfo& loss : losses()) {
    if (name == loss.name) return loss.kind;
  }
  throw Error(ErrorKind::kConfig, fmt::format("--loss: found '{}', wanted a loss", name));
}

Recipe recipe_for(const Setting& setting) {
  Recipe recipe;
  recipe.loss = loss_named(setting.loss);
  recipe.optimizer = OptimizerKind::kAdam;
  recipe.batch_size = setting.batch;
  recipe.clips = false;
  return recipe;
}

DeviceData load(const Setting& setting, const ExportedModel& model, const Graph& graph, const Recipe& recipe) {
  std::vector<DType> inputs;
  for (const ExportedTensor& input : model.inputs()) inputs.push_back(input.dtype);
  DataSource source;
  source.train = setting.data;
  source.where = "--data";
  const bool classes = info_of(recipe.loss).targets == Targets::kClasses;
  const Splits splits = load_data(source, classes ? kClassTargets : kNumberTargets, 0, "", inputs);
  DeviceData data = to_device(splits.train, graph, recipe, at::Device(setting.device));
  if (setting.device == "cpu") return data;
  // The same batches over and over, in longer epochs: at the end of each the host waits for the GPU.
  const auto repeated = [](const SampleArray& all) -> SampleArray {
    std::vector<std::int64_t> times(static_cast<std::size_t>(all.stored().dim()), 1);
    times[0] = kEpochsInOne;
    return {all.stored().repeat(times), all.type()};
  };
  for (SampleArray& input : data.inputs) input = repeated(input);
  data.target = repeated(data.target);
  data.size *= kEpochsInOne;
  return data;
}

Lowering lowering_for(const Setting& setting, const Graph& graph, const Recipe& recipe, const DeviceData& data) {
  MeasureOptions options;
  options.width = static_cast<int>(setting.rates.size());
  options.threads = setting.threads;
  options.slot_steps = setting.lowering == "auto" ? kPlenty : 0;
  options.graphs = cuda_graphs(at::Device(setting.device)).backend;
  return measure(graph, recipe, data, options, at::Device(setting.device), SystemClock())
      .best_for(options.width)
      .lowering;
}

DeviceData batch_at(const DeviceData& data, std::int64_t batch, std::int64_t number) {
  const std::int64_t begin = number * batch % data.size;
  DeviceData part{{}, data.target.range(begin, begin + batch), batch};
  for (const SampleArray& input : data.inputs) part.inputs.push_back(input.range(begin, begin + batch));
  return part;
}

EpochOptions in_order(const Graph& graph) {
  EpochOptions options;
  options.order.shuffle = false;
  options.fixed_batch = graph.fixed_batch;
  options.largest_batch = graph.largest_batch;
  return options;
}

// Where arrays are used: filled, and trained epoch by epoch.
class Trained {
 public:
  Trained(const Setting& setting, const Graph& graph, const Recipe& recipe, const DeviceData& data,
          const Lowering& lowering)
      : setting_(setting),
        recipe_(recipe),
        options_(in_order(graph)),
        data_(data),
        array_(graph, recipe,
               {.lowering = lowering,
                .width = static_cast<int>(setting.rates.size()),
                .study_seed = 0,
                .device = at::Device(setting.device),
                .graphs = cuda_graphs(at::Device(setting.device)).backend}),
        epochs_(recipe, options_, data, nullptr) {
    for (std::size_t b = 0; b < setting.rates.size(); ++b) {
      SlotInit init;
      init.hyper.optimizer = default_hyper(recipe.optimizer);
      init.hyper.optimizer.lr = setting.rates[b];
      for (const Hyper& hyper : graph.hypers) init.hyper.graph.push_back(hyper.value);
      array_.admit(static_cast<int>(b), init);
    }
  }

  /// One step on batch `number`, as an epoch of one batch: every slot's loss before it.
  [[nodiscard]] std::vector<double> step(std::int64_t number) {
    const DeviceData one = batch_at(data_, setting_.batch, number);
    std::vector<double> losses;
    for (const EpochResult& result : Epochs(recipe_, options_, one, nullptr).run(array_)) {
      losses.push_back(result.metrics.at("train_loss"));
    }
    return losses;
  }

  void epoch() { static_cast<void>(epochs_.run(array_)); }
  [[nodiscard]] std::int64_t steps_per_epoch() const { return epochs_.steps_per_epoch(); }
  [[nodiscard]] std::int64_t bytes_per_slot() const { return array_.bytes_per_slot(); }
  [[nodiscard]] std::string lowering() const { return array_.lowering().to_text(); }
  [[nodiscard]] StepCounts counts() const { return array_.step_counts(); }

 private:
  const Setting& setting_;
  const Recipe& recipe_;
  EpochOptions options_;
  const DeviceData& data_;
  Array array_;
  Epochs epochs_;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::int64_t resident_bytes() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

class Server {
 public:
  Server(Trained& trained, json ready) : trained_(trained) {
    json losses = json::array();
    const double begin = clock_.seconds();
    losses.push_back(trained_.step(0));
    ready["first_step_s"] = clock_.seconds() - begin;
    for (int s = 1; s < kCheckedSteps; ++s) losses.push_back(trained_.step(s));
    ready["losses"] = losses;
    ready["lowering"] = trained_.lowering();
    ready["bytes_per_slot"] = trained_.bytes_per_slot();
    ready["rss"] = resident_bytes();
    ready["runs"] = fmt::format("loops {}, LIBXSMM {}, ATen {}", simd::name_of(simd::instruction_set()),
                                cpu::xsmm_target(), at::get_cpu_capability());
    tell(ready);
  }

  void serve() {
    std::string command;
    for (double seconds = 0; std::cin >> command && command == "measure" && std::cin >> seconds;)
      tell(measured(seconds));
    const StepCounts counts = trained_.counts();
    tell({{"rss_peak", peak_resident_bytes()},
          {"graphs",
           {{"captured", counts.captured},
            {"replayed", counts.replayed},
            {"eager", counts.eager},
            {"why_eager", counts.why_eager}}}});
  }

 private:
  static void tell(const json& answer) { std::cout << answer.dump() << std::endl; }

  json timed(std::int64_t epochs) {
    const double wall = clock_.seconds(), cpu = cpu_seconds();
    for (std::int64_t e = 0; e < epochs; ++e) trained_.epoch();
    wall_ = clock_.seconds() - wall;
    return {{"steps", epochs * trained_.steps_per_epoch()}, {"wall_s", wall_}, {"cpu_s", cpu_seconds() - cpu}};
  }

  // Whole epochs, as many as fill the time.
  json measured(double seconds) {
    std::int64_t epochs = epoch_seconds_ > 0 ? std::max(1L, std::lround(seconds / epoch_seconds_)) : 1;
    json result = timed(epochs);
    while (epoch_seconds_ == 0 && wall_ < seconds / 4) result = timed(epochs *= 2);
    epoch_seconds_ = wall_ / static_cast<double>(epochs);
    return result;
  }

  Trained& trained_;
  SystemClock clock_;
  double wall_ = 0, epoch_seconds_ = 0;
};

// The kernels of an epoch as LibTorch's profiler sees them, behind some in which graphs are made.
void trace(Trained& trained, const std::string& file) {
  namespace profiler = torch::autograd::profiler;
  const torch::profiler::impl::ProfilerConfig config(torch::profiler::impl::ProfilerState::KINETO);
  const std::set<torch::profiler::impl::ActivityType> kinds = {torch::profiler::impl::ActivityType::CUDA};
  for (int e = 0; e < 3; ++e) trained.epoch();
  profiler::prepareProfiler(config, kinds);
  profiler::enableProfiler(config, kinds);
  trained.epoch();
  profiler::disableProfiler()->save(file);
}

void run(const Setting& setting) {
  const SystemClock clock;
  const std::int64_t start = resident_bytes();
  const ExportedModel model = ExportedModel::read(setting.model);
  const Recipe recipe = recipe_for(setting);
  const Graph graph = model.graph({});
  const DeviceData data = load(setting, model, graph, recipe);
  if (setting.profiled > 0) {
    std::cout << profile(graph, recipe, data, setting.batch, setting.threads, setting.profiled);
    return;
  }
  const double begin = clock.seconds();
  const Lowering lowering = lowering_for(setting, graph, recipe, data);
  const double measuring = clock.seconds() - begin;
  const WayQuestion question{graph, recipe, at::Device(setting.device), static_cast<int>(setting.rates.size()),
                             setting.threads};
  Trained trained(setting, graph, recipe, data, lowering);
  if (!setting.trace.empty()) return trace(trained, setting.trace);
  Server(trained, {{"rss_start", start}, {"measuring_s", measuring}, {"note", way_note(question, lowering)}}).serve();
}

Setting setting_of(int argc, char** argv) {
  namespace po = boost::program_options;
  Setting setting;
  std::string rates;
  po::options_description options;
  auto add = options.add_options();
  add("model", po::value(&setting.model)->required(), "");
  add("data", po::value(&setting.data)->required(), "");
  add("batch", po::value(&setting.batch)->required(), "");
  add("rates", po::value(&rates)->default_value("0.001"), "learning rates of the slots, with commas between");
  add("loss", po::value(&setting.loss)->default_value("cross_entropy"), "");
  add("threads", po::value(&setting.threads)->default_value(1), "");
  add("lowering", po::value(&setting.lowering)->default_value("auto"), "auto, or serial: slot by slot");
  add("device", po::value(&setting.device)->default_value("cpu"), "");
  add("trace", po::value(&setting.trace), "writes the kernels of an epoch on a GPU there, as a Chrome trace, and ends");
  add("profile", po::value(&setting.profiled)->default_value(0)->implicit_value(1001),
      "prints where the time of so many steps of a compiled slot goes, and ends");
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, options), values);
  po::notify(values);
  setting.rates = numbers_in(rates);
  if (setting.device == "cuda") setting.device = "cuda:0";
  if (setting.device != "cpu" && cuda_devices() == 0) {
    throw Error(ErrorKind::kDevice,
                fmt::format("--device: found {}, but this machine has no GPU that LibTorch can use", setting.device));
  }
  return setting;
}

}  // namespace
}  // namespace hfta::fusion

int main(int argc, char** argv) {
  // As hfta-tune's main: freed blocks are kept, or every step page-faults.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
  try {
    hfta::fusion::run(hfta::fusion::setting_of(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
