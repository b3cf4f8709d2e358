// Samplers on functions with a known least value, by ask and tell: simple regret, and the time of an ask.
//
// Writes JSON in the layout of optuna_regret.py's, which table.py reads, and prints a line for each run.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cmath>
#include <ctime>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/search/functions.hpp"
#include "search/methods.hpp"

namespace {

using namespace hfta;
using bench::Function;
using nlohmann::json;

constexpr std::array<int, 3> kMarks = {20, 60, 100}, kHistories = {10, 100, 1000};

double processor_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], at - static_cast<double>(below));
}

std::unique_ptr<search::Sampler> make(const std::string& name, const Function& function, std::uint64_t seed) {
  static const std::set<std::string> none;
  const search::SearchTask task{.space = function.space, .goal = trials::Goal::kMinimize, .seed = seed, .fixed = none};
  return search::method(name).sampler({}, task);
}

void tell(search::History& history, trials::Params params, double value) {
  history.push_back({std::move(params), {value}, {value}, trials::State::kComplete});
}

// A trial that failed is told as such or, if `imputed`, as having the worst value of all.
void tell_failed(search::History& history, trials::Params params, bool imputed) {
  std::optional<double> worst;
  for (const search::SeenTrial& trial : history) {
    if (const auto value = trial.value()) worst = std::max(worst.value_or(*value), *value);
  }
  if (imputed && worst) return tell(history, std::move(params), *worst);
  history.push_back({std::move(params), {std::nan("")}, {}, trials::State::kFail});
}

struct Run {
  std::vector<double> regrets;  // simple regret after each mark
  int failed = 0;
};

// `batch` configurations are asked, then told.
Run run_of(const std::string& name, const Function& function, std::uint64_t seed, int batch, bool imputed) {
  Run run;
  const auto sampler = make(name, function, seed);
  search::History history;
  std::vector<double> curve;
  double best = std::numeric_limits<double>::infinity();
  for (int n = 0; n < kMarks.back(); n += batch) {
    for (trials::Params& params : sampler->ask(n, std::min(batch, kMarks.back() - n), history)) {
      if (function.fails != nullptr && function.fails(params)) {
        tell_failed(history, std::move(params), imputed);
        ++run.failed;
      } else {
        const double value = function.value(params);
        best = std::min(best, value);
        tell(history, std::move(params), value);
      }
      curve.push_back(best - function.least);
    }
  }
  for (const int mark : kMarks) run.regrets.push_back(curve.at(static_cast<std::size_t>(mark) - 1));
  return run;
}

// Processor time of one ask behind a history of random trials: the median of some, the first left out.
double milliseconds(const std::string& name, const Function& function, int trials) {
  constexpr int kAsks = 5;
  search::History history;
  for (trials::Params& params : search::make_random(function.space, 1)->ask(0, trials, {})) {
    const double value = function.value(params);
    tell(history, std::move(params), value);
  }
  const auto sampler = make(name, function, 0);
  std::vector<double> took;
  for (int i = 0; i <= kAsks; ++i) {
    const double began = processor_milliseconds();
    trials::Params params = sampler->ask(trials + i, 1, history).at(0);
    took.push_back(processor_milliseconds() - began);
    const double value = function.value(params);
    tell(history, std::move(params), value);
  }
  return quantile({took.begin() + 1, took.end()}, 0.5);
}

// Those that only choose configurations, of any space.
std::vector<std::string> sampler_names() {
  std::vector<std::string> names;
  for (const search::Method& method : search::methods()) {
    if (method.scheduler == nullptr && !method.needs_list) names.emplace_back(method.name);
  }
  return names;
}

struct Options {
  int seeds = 20;
  std::vector<std::string> samplers, functions;
  std::vector<int> batches;
  std::string output;
  bool times = true, imputed = false;
  int first_seed = 0;
};

void measure(const Options& options, const std::string& name, const Function& function, json& result) {
  for (const int batch : options.batches) {
    std::vector<std::vector<double>> all;
    int failed = 0;
    for (int i = 0; i < options.seeds; ++i) {
      const auto seed = static_cast<std::uint64_t>(options.first_seed + i);
      Run run = run_of(name, function, seed, batch, options.imputed);
      all.push_back(std::move(run.regrets));
      failed += run.failed;
    }
    std::cout << fmt::format("{:10} {:10} batches of {:<2}", function.name, name, batch);
    for (std::size_t m = 0; m < kMarks.size(); ++m) {
      std::vector<double> at;
      for (const std::vector<double>& run : all) at.push_back(run[m]);
      std::cout << fmt::format("  {:.2e} [{:.1e}, {:.1e}]", quantile(at, 0.5), quantile(at, 0.25), quantile(at, 0.75));
    }
    if (function.fails != nullptr) std::cout << fmt::format("  {:.1f} of a run failed", 1.0 * failed / options.seeds);
    std::cout << std::endl;
    result["regret"][fmt::format("{}/{}/{}", function.name, name, batch)] = all;
  }
  if (!options.times) return;
  std::cout << fmt::format("{:10} {:10} ms per ask    ", function.name, name);
  for (const int trials : kHistories) {
    const double took = milliseconds(name, function, trials);
    result["milliseconds"][fmt::format("{}/{}/{}", function.name, name, trials)] = took;
    std::cout << fmt::format("  {:.3g} at {}", took, trials);
  }
  std::cout << std::endl;
}

Options options_from(int argc, char** argv) {
  namespace po = boost::program_options;
  Options options;
  std::vector<std::string> all;
  for (const Function& function : bench::functions()) {
    if (function.fails == nullptr) all.push_back(function.name);
  }
  po::options_description flags("Samplers on functions with a known least value (bench/README.md)");
  auto add = flags.add_options();
  add("help", "this text");
  add("seeds", po::value(&options.seeds)->default_value(20), "runs of each kind");
  add("first-seed", po::value(&options.first_seed)->default_value(0), "of these runs");
  add("samplers", po::value(&options.samplers)->multitoken()->default_value(sampler_names(), "all"), "methods");
  add("functions", po::value(&options.functions)->multitoken()->default_value(all, "all"),
      "of functions.hpp; by default all that never fail");
  add("impute", "tell trials that failed as COMPLETE with the worst value so far");
  add("batches", po::value(&options.batches)->multitoken()->default_value({1, 8}, "1 8"), "asked at once");
  add("output", po::value(&options.output), "JSON for table.py; runs that it has already are kept");
  add("no-times", "only regret");
  po::variables_map values;
  po::store(po::parse_command_line(argc, argv, flags), values);
  po::notify(values);
  options.times = values.count("no-times") == 0;
  options.imputed = values.count("impute") > 0;
  if (values.count("help") == 0) return options;
  std::cout << flags;
  options.samplers.clear();
  return options;
}

void run(const Options& options) {
  json result = {{"program", "hfta-tune"}, {"marks", kMarks}};
  if (std::ifstream file(options.output); file) result = json::parse(file);
  for (const std::string& name : options.samplers) {
    if (search::find_method(name) == nullptr) throw std::runtime_error("no method of the name " + name);
    for (const Function& function : bench::functions()) {
      if (std::count(options.functions.begin(), options.functions.end(), function.name) == 0) continue;
      measure(options, name, function, result);
      if (!options.output.empty()) std::ofstream(options.output) << result.dump() << "\n";
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(options_from(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "hfta_bench_search: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
