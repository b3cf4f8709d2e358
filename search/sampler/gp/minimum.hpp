#pragma once
/// The least value of a smooth function within bounds. Internal to the gp sampler.

#include <Eigen/Core>
#include <functional>

namespace hfta::search::gp {

/// The value at x; sets `gradient`, which has the size of x.
using Smooth = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct Minimum {
  Eigen::VectorXd x;
  double value = 0;
};

/// The best point that L-BFGS-B (Byrd, Lu, Nocedal and Zhu, SIAM J. Sci. Comput. 16, 1995; LBFGS++) evaluates, from
/// `start`, in at most `evaluations`. A value that is not finite counts as worse than any other. Deterministic.
[[nodiscard]] Minimum minimize(const Smooth& f, const Eigen::VectorXd& start, const Eigen::VectorXd& low,
                               const Eigen::VectorXd& high, int evaluations);

}  // namespace hfta::search::gp
