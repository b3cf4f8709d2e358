#pragma once
/// Logarithms of functions of the standard normal distribution, also far out. Internal to the gp sampler.

namespace hfta::search::gp {

/// The logarithm of phi(z), the standard normal's density.
[[nodiscard]] double log_density(double z);

/// log(phi(z) + z Phi(z)), the logarithm of the expected improvement of a standard normal over -z, to within 1e-9 also
/// far out (Ament, Daulton, Eriksson, Balandat and Bakshy, "Unexpected Improvements to Expected Improvement for
/// Bayesian Optimization", NeurIPS 2023, eq. 9).
[[nodiscard]] double log_improvement(double z);

/// The logarithm of Phi(z), the standard normal's probability below z, also far out.
[[nodiscard]] double log_probability(double z);

}  // namespace hfta::search::gp
