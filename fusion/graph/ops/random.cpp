// Ops that draw numbers at random.
#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {
namespace {

// Noise that evaluation turns off.
constexpr OpTraits noise(std::string_view flag, std::string_view rate, std::string_view arguments) {
  return {.kind = OpClass::kRandom,
          .draws = Draws::kNoise,
          .rate = rate,
          .training = flag,
          .evaluation = Evaluation::kFlagOff,
          .arguments = arguments};
}

constexpr OpTraits drawn(Draws distribution, std::string_view rate = "") {
  return {.kind = OpClass::kRandom, .draws = distribution, .rate = rate, .evaluation = Evaluation::kMean};
}

constexpr OpTraits kWithoutMean = {
    .kind = OpClass::kRandom, .draws = Draws::kOther, .evaluation = Evaluation::kDoubtful};

constexpr OpTraits of_default_type(OpTraits traits) {
  traits.default_type = true;
  return traits;
}

constexpr OpTraits with_rate(OpTraits traits) {
  traits.rate = "p";
  return traits;
}

constexpr OpFamily kFamilies[] = {
    {Forms::kBoth, "alpha_dropout dropout feature_alpha_dropout feature_dropout", noise("train", "p", "input p train")},
    {Forms::kFunctional, "native_dropout", noise("train", "p", "input p train")},
    {Forms::kBoth, "rrelu", noise("training", "", "")},
    {Forms::kFunctional, "rrelu_with_noise_functional", noise("training", "", "")},

    {Forms::kBoth, "bernoulli", drawn(Draws::kBernoulli, "p")},
    {Forms::kFunctional, "rand", of_default_type(drawn(Draws::kUniform))},
    {Forms::kFunctional, "rand_like", drawn(Draws::kUniform)},
    {Forms::kBoth, "uniform", drawn(Draws::kUniform)},
    {Forms::kFunctional, "randn", of_default_type(drawn(Draws::kNormal))},
    {Forms::kFunctional, "normal_functional randn_like", drawn(Draws::kNormal)},
    {Forms::kBoth, "normal", drawn(Draws::kNormal)},
    {Forms::kBoth, "exponential", drawn(Draws::kExponential)},

    {Forms::kBoth, "cauchy log_normal random", kWithoutMean},
    {Forms::kBoth, "geometric", with_rate(kWithoutMean)},
    {Forms::kFunctional, "binomial multinomial poisson randint randint_like randperm", kWithoutMean},
};

}  // namespace

std::span<const OpFamily> random_families() { return kFamilies; }

}  // namespace hfta::fusion
