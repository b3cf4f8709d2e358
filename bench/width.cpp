// Is an array of B slots ever slower than its B trials one after another?
//   hfta_bench_width CONFIG.yaml DATA_ROOT [EPOCHS] [REPEATS] [DEVICE]
// For each width: wall time of B trials over some epochs in one array, and one after another in arrays of one slot,
// both from nothing: opening, measuring lowerings and training are counted. In turn, medians of REPEATS.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "engine/config.hpp"
#include "engine/fused/fused_trainer.hpp"
#include "search/sampler.hpp"

namespace hfta::engine {
namespace {

struct Setting {
  StudyConfig config;
  std::filesystem::path data_root;
  int epochs = 3;
  std::string device = "cpu";
};

double seconds_for(const Setting& setting, const std::vector<trials::Params>& trials, int width) {
  SystemFiles files;
  const SystemClock clock;
  TrainerOptions options{setting.config, setting.device, setting.device, 1, setting.data_root, ""};
  options.config.width = width;
  FusedTrainer trainer(options, files, clock);
  trainer.check(trials.front());  // data are loaded, as they would be once for a whole study
  const double begin = clock.seconds();
  const double expected = static_cast<double>(trials.size()) * setting.epochs;
  for (std::size_t first = 0; first < trials.size(); first += static_cast<std::size_t>(width)) {
    const auto array = trainer.open(trials[first], width, expected, never);
    for (int b = 0; b < width; ++b) array->admit(b, b, trials[first + static_cast<std::size_t>(b)]);
    for (int e = 0; e < setting.epochs; ++e) static_cast<void>(array->run_epoch([] { return false; }));
  }
  return clock.seconds() - begin;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(const Setting& setting, int repeats) {
  // Trials of one partition: the first draw's shape-changing values for all.
  const auto sampler = search::make_random(setting.config.space, setting.config.seed);
  std::vector<trials::Params> trials = sampler->ask(0, 32, {});
  for (trials::Params& params : trials) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      if (setting.config.shape_changing.contains(params[i].first)) params[i].second = trials.front()[i].second;
    }
  }
  static_cast<void>(seconds_for(setting, {trials.front()}, 1));  // libraries start up
  fmt::print("{:>5} {:>12} {:>14} {:>8}\n", "width", "array [s]", "one by one [s]", "speed-up");
  for (const int width : {1, 2, 3, 4, 8, 16, 32}) {
    const std::vector<trials::Params> some(trials.begin(), trials.begin() + width);
    std::vector<double> together, alone;
    for (int r = 0; r < repeats; ++r) {  // who begins changes, so that neither is always the colder one
      if (r % 2 == 0) together.push_back(seconds_for(setting, some, width));
      alone.push_back(seconds_for(setting, some, 1));
      if (r % 2 != 0) together.push_back(seconds_for(setting, some, width));
    }
    fmt::print("{:>5} {:>12.3f} {:>14.3f} {:>8.2f}\n", width, median(together), median(alone),
               median(alone) / median(together));
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace hfta::engine

int main(int argc, char** argv) {
  // As hfta-tune's main: freed blocks are kept, or every step page-faults.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, -1);
  mallopt(M_TOP_PAD, 64 << 20);
  if (argc < 3) {
    std::fputs("usage: hfta_bench_width CONFIG.yaml DATA_ROOT [EPOCHS] [REPEATS] [DEVICE]\n", stderr);
    return EXIT_FAILURE;
  }
  try {
    hfta::engine::Setting setting{hfta::engine::load_config(argv[1], {}), argv[2]};
    if (argc > 3) setting.epochs = std::atoi(argv[3]);
    if (argc > 5) setting.device = argv[5];
    hfta::engine::run(setting, argc > 4 ? std::atoi(argv[4]) : 5);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
