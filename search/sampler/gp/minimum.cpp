#include "search/sampler/gp/minimum.hpp"

#include <LBFGSB.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace hfta::search::gp {
namespace {

using Eigen::VectorXd;

// Thrown through the solver when evaluations are used up.
struct Enough {};

}  // namespace

Minimum minimize(const Smooth& f, const VectorXd& start, const VectorXd& low, const VectorXd& high, int evaluations) {
  Minimum best{start.cwiseMax(low).cwiseMin(high), std::numeric_limits<double>::infinity()};
  int left = evaluations;
  const auto counted = [&](const VectorXd& x, VectorXd& gradient) {
    if (left-- <= 0) throw Enough();
    const double value = f(x, gradient);
    if (!std::isfinite(value) || !gradient.allFinite()) throw std::runtime_error("not finite");
    if (value < best.value) best = {x, value};
    return value;
  };
  LBFGSpp::LBFGSBParam<double> options;
  options.epsilon = 1e-7;
  options.epsilon_rel = 1e-7;
  options.past = 3;
  options.delta = 1e-9;
  options.max_linesearch = 20;
  options.max_iterations = evaluations;
  VectorXd x = best.x;
  double value = 0;
  try {
    LBFGSpp::LBFGSBSolver<double> solver(options);
    solver.minimize(counted, x, value, low, high);
  } catch (const Enough&) {          // the best so far is what was wanted
  } catch (const std::exception&) {  // a line search that finds nothing better: the best so far is a minimum
  }
  return best;
}

}  // namespace hfta::search::gp
