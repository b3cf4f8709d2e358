// A file twice as large as the memory that the process may have trains, and as it does when it is loaded. By itself, as
// the limit is the process's.
#include <ATen/Parallel.h>
#include <malloc.h>
#include <sys/resource.h>

#include <cstdint>
#include <fstream>
#include <new>
#include <string>

#include "fusion/epochs.hpp"
#include "fusion/layers.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/fusion/array/models.hpp"
#include "tests/fusion/data/npy_text.hpp"
#include "tests/fusion/data/temporary_folder.hpp"

namespace hfta::fusion::testing {
namespace {

constexpr std::int64_t kPixels = 96 * 1024;

// Memory that RLIMIT_DATA counts, bytes.
std::uint64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmData:") continue;
    std::uint64_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

// Samples of zeros but for a few bytes, by which the label can be told; with holes, which take no room on the disk.
DataSource write_images(const test::TemporaryFolder& folder, std::int64_t samples) {
  const std::string shape = "(" + std::to_string(samples) + ", " + std::to_string(kPixels) + ")";
  const std::string header = test::npy_file(test::npy_header("|u1", shape), "");
  DataSource source;
  source.train = folder.write("x.npy", header);
  source.y = "y.npy";
  source.validation = 0.25;
  std::fstream x(source.train, std::ios::in | std::ios::out | std::ios::binary);
  std::vector<std::uint8_t> y;
  for (std::int64_t i = 0; i < samples; ++i) {
    y.push_back(static_cast<std::uint8_t>(i * 5 % 3));
    x.seekp(static_cast<std::streamoff>(header.size()) + i * kPixels + 4096 * y.back());
    for (int k = 0; k < 64; ++k) x.put(static_cast<char>(1 + (i + k) % 3));
  }
  x.close();
  std::filesystem::resize_file(source.train, header.size() + static_cast<std::uint64_t>(samples * kPixels));
  folder.write("y.npy", test::npy("|u1", "(" + std::to_string(samples) + ",)", y));
  return source;
}

// Two slots' metrics over two epochs.
std::vector<std::map<std::string, double>> curve(const DataSource& source, bool compiled, std::uint64_t memory) {
  LayerSpec linear;
  linear.kind = "linear";
  linear.positional = {kPixels, 3};
  const Graph graph = build_graph({linear}, {kBatch, kPixels}, DType::kFloat32);
  Recipe recipe;
  recipe.batch_size = 16;
  recipe.epochs = 2;
  recipe.metrics = {{"accuracy"}};
  const Splits splits = load_data(source, kClassTargets, 1, "", {}, memory);
  const DeviceData train = to_device(splits.train, graph, recipe, at::kCPU);
  const DeviceData validation = to_device(*splits.validation, graph, recipe, at::kCPU);
  Lowering lowering;
  lowering.chunk = compiled ? 1 : 2;
  if (compiled) lowering.executor = "compiled";
  Array array(graph, recipe, {.lowering = lowering, .width = 2, .study_seed = 1});
  for (int b = 0; b < 2; ++b) {
    SlotInit init;
    init.hyper.optimizer = default_hyper(recipe.optimizer);
    init.hyper.optimizer.lr = 1e-4 * (b + 1);
    array.admit(b, init);
  }
  const Epochs epochs(recipe, {}, train, &validation);
  std::vector<std::map<std::string, double>> all;
  for (int e = 0; e < recipe.epochs; ++e) {
    for (const EpochResult& result : epochs.run(array)) all.push_back(result.metrics);
  }
  return all;
}

}  // namespace

TEST_CASE("a file twice as large as the memory limit trains to the curve that it has without one") {
  constexpr std::uint64_t kWork = std::uint64_t{96} << 20, kPlenty = std::uint64_t{1} << 40;
  at::set_num_threads(1);
  const test::TemporaryFolder folder;
  const std::uint64_t limit = data_bytes() + kWork;
  const auto samples = static_cast<std::int64_t>(2 * limit / kPixels) + 1;
  const DataSource source = write_images(folder, samples);
  REQUIRE(std::filesystem::file_size(source.train) >= 2 * limit);
  const auto eager = curve(source, false, kPlenty), compiled = curve(source, true, kPlenty);
  CHECK(compiled.back().at("val_accuracy") > 0.9);
  malloc_trim(0);

  const rlimit small{limit, RLIM_INFINITY};
  REQUIRE(setrlimit(RLIMIT_DATA, &small) == 0);
  CHECK_THROWS_AS(curve(source, true, kPlenty), std::bad_alloc);  // it cannot be loaded
  CHECK(curve(source, false, 0) == eager);                        // what the machine says: the limit
  CHECK(curve(source, true, 0) == compiled);
}

}  // namespace hfta::fusion::testing
