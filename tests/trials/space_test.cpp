#include "trials/space.hpp"

#include <catch2/catch.hpp>
#include <set>

using namespace hfta::trials;

TEST_CASE("Distributions go by W&B's names") {
  const std::vector<std::pair<DistributionKind, std::string>> cases = {
      {DistributionKind::kConstant, "constant"},
      {DistributionKind::kCategorical, "categorical"},
      {DistributionKind::kIntUniform, "int_uniform"},
      {DistributionKind::kUniform, "uniform"},
      {DistributionKind::kQUniform, "q_uniform"},
      {DistributionKind::kLogUniform, "log_uniform"},
      {DistributionKind::kQLogUniform, "q_log_uniform"},
      {DistributionKind::kLogUniformValues, "log_uniform_values"},
      {DistributionKind::kQLogUniformValues, "q_log_uniform_values"},
      {DistributionKind::kInvLogUniform, "inv_log_uniform"},
      {DistributionKind::kInvLogUniformValues, "inv_log_uniform_values"},
      {DistributionKind::kNormal, "normal"},
      {DistributionKind::kQNormal, "q_normal"},
      {DistributionKind::kLogNormal, "log_normal"},
      {DistributionKind::kQLogNormal, "q_log_normal"},
  };
  CHECK(distribution_names().size() == cases.size());
  for (std::size_t i = 0; i < distributions().size(); ++i)
    CHECK(static_cast<std::size_t>(distributions()[i].kind) == i);
  for (const auto& [kind, name] : cases) {
    CHECK(name_of(kind) == name);
    CHECK(distribution_from(name) == kind);
  }
  for (const char* other : {"", "Uniform", "loguniform", "beta", "uniform "}) CHECK_FALSE(distribution_from(other));
}

namespace {

Parameter number(const std::string& name, std::vector<Condition> when = {}) {
  Parameter parameter{name, {}, std::move(when)};
  parameter.distribution.kind = DistributionKind::kUniform;
  return parameter;
}

const ParamValue kSgd = std::string("sgd"), kAdam = std::string("adam");

// beta applies to adam, momentum to sgd, and nesterov where momentum is above nothing: twice nested, listed first.
Space nested() {
  Parameter optimizer{"optimizer", {}};
  optimizer.distribution.kind = DistributionKind::kCategorical;
  optimizer.distribution.values = {kSgd, kAdam};
  Parameter momentum = number("momentum", {{"optimizer", {kSgd}}});
  momentum.distribution.kind = DistributionKind::kCategorical;
  momentum.distribution.values = {0.0, 0.9};
  return {number("nesterov", {{"momentum", {0.9}}}), optimizer, momentum, number("beta", {{"optimizer", {kAdam}}})};
}

}  // namespace

TEST_CASE("a parameter applies where its conditions hold, and those of what they name") {
  const Space space = nested();
  struct Case {
    ParamValue optimizer;
    double momentum;
    std::vector<std::string> wanted;
  };
  const std::vector<Case> cases = {{kSgd, 0.9, {"nesterov", "optimizer", "momentum"}},
                                   {kSgd, 0.0, {"optimizer", "momentum"}},
                                   {kAdam, 0.9, {"optimizer", "beta"}}};
  for (const Case& c : cases) {
    const Params all = {{"nesterov", 0.5}, {"optimizer", c.optimizer}, {"momentum", c.momentum}, {"beta", 0.5}};
    const Params params = applying(space, all);
    std::vector<std::string> names;
    for (const auto& [name, value] : params) names.push_back(name);
    CHECK(names == c.wanted);
    CHECK(is_whole(space, params));
    CHECK_FALSE(is_whole(space, all));
    Params fewer = params;
    fewer.pop_back();
    CHECK_FALSE(is_whole(space, fewer));
    CHECK(applying(space, params) == params);
  }
  CHECK(is_conditional(space));
  CHECK_FALSE(is_conditional({number("x")}));
}

TEST_CASE("a parameter is made to apply by the values of others") {
  const Space space = nested();
  Params all = {{"nesterov", 0.5}, {"optimizer", kAdam}, {"momentum", 0.0}, {"beta", 0.5}};
  make_apply(space, "nesterov", all);
  CHECK(*find_value(all, "optimizer") == kSgd);
  CHECK(*find_value(all, "momentum") == ParamValue(0.9));
  CHECK(find_value(applying(space, all), "nesterov") != nullptr);
}

TEST_CASE("conditions on many parameters are seen in little time") {
  Space space = {number("p0")};
  Params all = {{"p0", 1.0}};
  for (int i = 1; i < 60; ++i) {
    std::vector<Condition> when;
    for (int j = 0; j < i; ++j) when.push_back({"p" + std::to_string(j), {1.0}});
    space.push_back(number("p" + std::to_string(i), when));
    all.emplace_back("p" + std::to_string(i), 1.0);
  }
  CHECK(applying(space, all).size() == 60);
  make_apply(space, "p59", all);
  CHECK(is_whole(space, all));
}
