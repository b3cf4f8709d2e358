// The table of optimizers is whole. That rules and defaults are torch.optim's is for torch_check.py.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>

#include "fusion/optimizers/rules.hpp"

namespace hfta::fusion {
namespace {

bool is_field(const std::string& name) {
  const auto& all = hyper_fields();
  return std::any_of(all.begin(), all.end(), [&](const HyperField& field) { return field.name == name; });
}

double read(const OptimizerHyper& hyper, const std::string& name) {
  for (const HyperField& field : hyper_fields()) {
    if (field.name != name) continue;
    return std::visit([&](auto member) { return static_cast<double>(hyper.*member); }, field.field);
  }
  return NAN;
}

}  // namespace

TEST_CASE("every kind of optimizer is in the table, under its own name") {
  std::set<std::string> names;
  for (const OptimizerInfo& info : optimizers()) {
    CAPTURE(info.name);
    CHECK(&info_of(info.kind) == &info);
    CHECK(std::string(name_of(info.kind)) == info.name);
    CHECK(names.insert(info.name).second);
    CHECK_FALSE(info.states.empty());
    CHECK(info.states.size() <= kMostStates);
  }
  CHECK(names.size() == static_cast<std::size_t>(OptimizerKind::kLast) + 1);
}

TEST_CASE("default_hyper sets every number that the kind reads") {
  for (const OptimizerInfo& info : optimizers()) {
    const OptimizerHyper hyper = default_hyper(info.kind);
    for (const HyperDefault& given : info.hypers) {
      CAPTURE(info.name, given.name);
      CHECK(is_field(given.name));
      CHECK(read(hyper, given.name) == given.value);
    }
  }
}

TEST_CASE("every number is read by a kind") {
  for (const HyperField& field : hyper_fields()) {
    CAPTURE(field.name);
    const auto reads = [&](const OptimizerInfo& info) {
      return std::any_of(info.hypers.begin(), info.hypers.end(),
                         [&](const HyperDefault& given) { return std::string(given.name) == field.name; });
    };
    CHECK(std::any_of(optimizers().begin(), optimizers().end(), reads));
  }
}

// The product of all momenta so far, which torch keeps as a state, against multiplying all of them.
TEST_CASE("nadam's product of momenta is that of all steps") {
  const double beta1 = GENERATE(0.0, 0.5, 0.9, 0.999), decay = GENERATE(0.0, 4e-3, 0.3, 5.0);
  OptimizerHyper hyper;
  hyper.beta1 = beta1;
  hyper.momentum_decay = decay;
  double product = 1;
  for (std::int64_t t = 1; t <= 3000; ++t) {
    product *= rules::Nadam::momentum(hyper, static_cast<double>(t));
    const double found = rules::Nadam::product(hyper, t);
    if (std::abs((1 - found) - (1 - product)) > 1e-13) FAIL_CHECK(beta1 << ", " << decay << ", step " << t);
  }
}

}  // namespace hfta::fusion
