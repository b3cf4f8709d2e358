#pragma once
/// The Wilcoxon signed-rank test on paired values.

#include <vector>

namespace hfta::search {

/// The p-value of paired differences lying above zero: the probability that the ranks of the positive ones sum up
/// to as much as they do, or to more, if each difference were as likely positive as negative (Wilcoxon, "Individual
/// comparisons by ranking methods", 1945; one-sided). Equal sizes share their mean rank; zeros are ranked with the
/// others, and their ranks then left out (Pratt, JASA 1959). Of up to 50 differences the distribution is exact, ties
/// and zeros included; of more it is the normal one with the same mean and variance, and a continuity correction. 1
/// where there is nothing but zeros, or nothing at all. Infinite differences are the largest; none may be NaN.
[[nodiscard]] double signed_rank_p(const std::vector<double>& differences);

}  // namespace hfta::search
