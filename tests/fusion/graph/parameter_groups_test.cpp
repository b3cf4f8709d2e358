#include "fusion/parameter_groups.hpp"

#include <catch2/catch.hpp>

#include "base/error.hpp"

namespace hfta::fusion {
namespace {

using Names = std::vector<std::string>;
using Patterns = std::vector<Names>;

std::vector<ParameterGroup> groups(const Patterns& patterns) {
  std::vector<ParameterGroup> all;
  for (const Names& params : patterns) all.push_back({params, "group " + std::to_string(all.size())});
  return all;
}

Weight weight(std::string name, Shape shape, bool trained = true, Names tied = {}) {
  Weight w;
  w.name = std::move(name);
  w.shape = std::move(shape);
  w.trained = trained;
  w.tied = std::move(tied);
  return w;
}

Graph model() {
  Graph graph;
  graph.weights = {weight("backbone.conv.weight", {4, 3}), weight("backbone.conv.bias", {4}),
                   weight("backbone.norm.weight", {4}), weight("backbone.norm.running_mean", {4}, false),
                   weight("head.weight", {5, 4}, true, {"embedding.table"})};
  return graph;
}

TEST_CASE("the first group that means a parameter has it") {
  const auto [patterns, wanted] = GENERATE(table<Patterns, std::vector<int>>({
      {Patterns{}, {0, 0, 0, 0, 0}},
      {Patterns{Names{"*"}}, {1, 1, 1, 1, 1}},
      {Patterns{Names{"*bias", "*norm*"}}, {0, 1, 1, 1, 0}},
      {Patterns{Names{"*bias"}, Names{"backbone.*"}}, {2, 1, 2, 2, 0}},
      {Patterns{Names{"backbone"}, Names{"*bias"}}, {1, 1, 1, 1, 0}},  // a module is all below it
      {Patterns{Names{"backbone.conv"}, Names{"head.weight"}}, {1, 1, 0, 0, 2}},
      {Patterns{Names{"embedding"}, Names{"head"}}, {0, 0, 0, 0, 1}},                  // by a tied name
      {Patterns{Names{"back"}, Names{"*.weight"}, Names{"*.bias"}}, {2, 3, 2, 0, 2}},  // part of a name is no module
  }));
  CHECK(groups_of_weights(groups(patterns), model()) == wanted);
}

TEST_CASE("trained parameters are counted by group") {
  CHECK(group_sizes({}, model()) == std::vector<std::int64_t>{12 + 4 + 4 + 20});
  CHECK(group_sizes(groups({Names{"*norm*"}, Names{"backbone"}}), model()) == std::vector<std::int64_t>{20, 4, 16});
}

TEST_CASE("patterns that mean nothing, and groups that have nothing, are errors") {
  const auto [patterns, message] = GENERATE(table<Patterns, std::string>({
      {Patterns{}, ""},
      {Patterns{Names{"*bias"}, Names{"backbone"}}, ""},
      {Patterns{Names{"*bias"}, Names{"*bias", "head"}}, ""},  // the second has the head
      {Patterns{Names{"haed"}}, "group 0: found no parameter 'haed'; did you mean 'head'?"},
      {Patterns{Names{"*bias"}, Names{"head", "backbone.norm.running_mean"}},
       "group 1: found no parameter 'backbone.norm.running_mean'; there are for example backbone, backbone.conv, "
       "backbone.conv.bias, backbone.conv.weight, backbone.norm"},
      {Patterns{Names{"*"}, Names{"head", "*bias"}},
       "group 1: found only parameters that groups before it have, wanted one more: head, *bias"},
  }));
  INFO(message);
  const Names names = {"backbone.conv.weight", "backbone.conv.bias", "backbone.norm.weight", "head.weight"};
  std::string found;
  try {
    check_groups(groups(patterns), names);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    found = error.what();
  }
  CHECK(found == message);
}

}  // namespace
}  // namespace hfta::fusion
