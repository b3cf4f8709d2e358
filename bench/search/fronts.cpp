// Samplers on problems of two objectives whose Pareto front is known, by ask and tell: how much of the front's
// hypervolume is still missing. optuna_fronts.py does the same with Optuna's samplers, and prints lines of the same
// form.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cmath>
#include <iostream>
#include <string>
#include <vector>

#include "bench/search/functions.hpp"
#include "search/methods.hpp"
#include "trials/pareto.hpp"

namespace {

using namespace hfta;
using trials::Params;
using trials::Point;

constexpr std::array<int, 2> kMarks = {100, 300}, kBatches = {1, 8};

struct Problem {
  std::string name;
  trials::Space space;
  Point (*values)(const Params& params);  ///< Both to be minimized.
  Point reference;
  double whole;  ///< The hypervolume of the front.
};

double number(const Params& params, std::size_t i) {
  if (const auto* integer = std::get_if<std::int64_t>(&params[i].second)) return static_cast<double>(*integer);
  return std::get<double>(params[i].second);
}

const bench::Function& function(const std::string& name) {
  return *std::find_if(bench::functions().begin(), bench::functions().end(),
                       [&](const bench::Function& one) { return one.name == name; });
}

// Of Zitzler, Deb and Thiele's problems ZDT1 and ZDT2 (Evolutionary Computation 8(2), 2000), with six numbers.
double zdt_g(const Params& params) {
  double sum = 0;
  for (std::size_t i = 1; i < params.size(); ++i) sum += number(params, i);
  return 1 + 9 * sum / static_cast<double>(params.size() - 1);
}

Point zdt1(const Params& params) {
  const double x = number(params, 0), g = zdt_g(params);
  return {x, g * (1 - std::sqrt(x / g))};
}

Point zdt2(const Params& params) {
  const double x = number(params, 0), g = zdt_g(params);
  return {x, g * (1 - (x / g) * (x / g))};
}

// The loss of functions.hpp's `mixed`, and the logarithm of its width.
Point mixed_width(const Params& params) { return {function("mixed").value(params), std::log2(number(params, 1)) - 3}; }

double whole_of_mixed_width(const Point& reference) {
  std::vector<Point> points;
  for (int width = 8; width <= 512; ++width) {
    points.push_back(
        mixed_width({{"lr", 3e-3}, {"width", std::int64_t{width}}, {"drop", 0.2}, {"opt", std::string("b")}}));
  }
  return trials::hypervolume(points, reference);
}

std::vector<Problem> problems() {
  const trials::Space cube = function("hartmann6").space, mixed = function("mixed").space;
  const Point corner = {1, 10}, far = {5, 6};
  return {{"zdt1", cube, zdt1, corner, 10 - 1.0 / 3},
          {"zdt2", cube, zdt2, corner, 10 - 2.0 / 3},
          {"mixed_width", mixed, mixed_width, far, whole_of_mixed_width(far)}};
}

// What is missing after each mark. `batch` configurations are asked, then told.
std::vector<double> missing(const std::string& name, const Problem& problem, std::uint64_t seed, int batch) {
  static const std::set<std::string> none;
  const search::SearchTask task{.space = problem.space,
                                .goal = trials::Goal::kMinimize,
                                .seed = seed,
                                .fixed = none,
                                .goals = {trials::Goal::kMinimize, trials::Goal::kMinimize}};
  const auto sampler = search::method(name).sampler({}, task);
  search::History history;
  std::vector<Point> points;
  std::vector<double> left;
  for (int n = 0; n < kMarks.back(); n += batch) {
    for (Params& params : sampler->ask(n, std::min(batch, kMarks.back() - n), history)) {
      const Point values = problem.values(params);
      history.push_back({std::move(params), {values[0]}, values, trials::State::kComplete});
      points.push_back(values);
      if (std::count(kMarks.begin(), kMarks.end(), static_cast<int>(points.size())) == 0) continue;
      left.push_back(problem.whole - trials::hypervolume(points, problem.reference));
    }
  }
  return left;
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

void run(const std::vector<std::string>& samplers, int seeds, int first_seed) {
  for (const Problem& problem : problems()) {
    for (const std::string& name : samplers) {
      for (const int batch : kBatches) {
        std::array<std::vector<double>, kMarks.size()> at;
        for (int seed = first_seed; seed < first_seed + seeds; ++seed) {
          const std::vector<double> left = missing(name, problem, static_cast<std::uint64_t>(seed), batch);
          for (std::size_t m = 0; m < kMarks.size(); ++m) at[m].push_back(left[m]);
        }
        std::cout << fmt::format("{:12} {:10} batches of {}", problem.name, name, batch);
        for (const std::vector<double>& left : at) {
          std::cout << fmt::format("  {:.3f} [{:.3f}, {:.3f}]", quantile(left, 0.5), quantile(left, 0.25),
                                   quantile(left, 0.75));
        }
        std::cout << std::endl;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  std::vector<std::string> all;
  for (const search::Method& method : search::methods()) {
    if (method.takes_objectives && !method.needs_list) all.emplace_back(method.name);
  }
  po::options_description flags("Samplers on problems of two objectives (bench/README.md)");
  flags.add_options()("help", "this text")("seeds", po::value<int>()->default_value(20), "runs of each kind")(
      "first-seed", po::value<int>()->default_value(0), "of these runs")(
      "samplers", po::value<std::vector<std::string>>()->multitoken()->default_value(all, "all"), "methods");
  try {
    po::variables_map values;
    po::store(po::parse_command_line(argc, argv, flags), values);
    if (values.count("help") > 0) {
      std::cout << flags;
      return 0;
    }
    run(values["samplers"].as<std::vector<std::string>>(), values["seeds"].as<int>(), values["first-seed"].as<int>());
  } catch (const std::exception& error) {
    std::cerr << "hfta_bench_fronts: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
