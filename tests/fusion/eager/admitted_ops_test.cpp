// What LibTorch says of the ops that a model may use, held against what fusion/op_traits.hpp says.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "fusion/op_traits.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::fusion {
namespace {

// Tensors, and what a graph can write down: numbers, sizes, words. No storage, stream, function or object.
bool is_plain(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::OptionalType:
    case c10::TypeKind::ListType:
      return is_plain(*type.containedType(0));
    case c10::TypeKind::TensorType:
    case c10::TypeKind::IntType:  // also dtypes, layouts and memory formats
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::StringType:
    case c10::TypeKind::DeviceObjType:
    case c10::TypeKind::GeneratorType:
      return true;
    default:
      return false;
  }
}

bool holds_tensors(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::ListType) return holds_tensors(*type.containedType(0));
  return type.kind() == c10::TypeKind::TensorType;
}

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// Every admitted overload that LibTorch has.
struct Overload {
  std::string op;
  const OpTraits& traits;
  c10::OperatorHandle handle;

  [[nodiscard]] const c10::FunctionSchema& schema() const { return handle.schema(); }
};

std::vector<Overload> admitted() {
  std::vector<Overload> all;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const std::string op = toString(name);
    const OpTraits* traits = op_traits(op);
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (traits != nullptr && handle) all.push_back({op, *traits, *handle});
  }
  return all;
}

// The kind of an argument, without its Optional; nothing: the schema has no such argument.
std::optional<c10::TypeKind> kind_of(const c10::FunctionSchema& schema, std::string_view name) {
  const std::optional<int> position = name.empty() ? std::nullopt : schema.argumentIndexWithName(name);
  if (!position) return std::nullopt;
  const c10::TypePtr type = schema.arguments()[static_cast<std::size_t>(*position)].real_type();
  return type->kind() == c10::TypeKind::OptionalType ? type->containedType(0)->kind() : type->kind();
}

using Kinds = std::set<c10::TypeKind>;

/// A fact that names an argument: where it stands, and of which kinds the argument is.
struct NamingFact {
  const char* name;
  std::string_view (*of)(const OpTraits&);
  Kinds kinds;
};

const std::vector<NamingFact>& naming_facts() {
  using K = c10::TypeKind;
  static const std::vector<NamingFact> facts = {
      {"rate", [](const OpTraits& op) { return op.rate; }, {K::FloatType, K::TensorType}},
      {"layers", [](const OpTraits& op) { return op.layers; }, {K::IntType}},
      {"training", [](const OpTraits& op) { return op.training; }, {K::BoolType}},
      {"mean", [](const OpTraits& op) { return op.statistics.mean; }, {K::TensorType}},
      {"variance", [](const OpTraits& op) { return op.statistics.variance; }, {K::TensorType}},
      {"momentum", [](const OpTraits& op) { return op.statistics.momentum; }, {K::FloatType}},
      {"constant_of", [](const OpTraits& op) { return op.constant_of; }, {K::NumberType, K::TensorType}},
      {"table", [](const OpTraits& op) { return op.table; }, {K::TensorType}},
      {"indices", [](const OpTraits& op) { return op.indices; }, {K::TensorType}},
      {"whole", [](const OpTraits& op) { return op.whole; }, {K::IntType}},
      {"default_type",
       [](const OpTraits& op) { return std::string_view(op.default_type ? "dtype" : ""); },
       {K::ScalarTypeType}},
  };
  return facts;
}

std::vector<std::string> words_in(std::string_view text) {
  std::istringstream stream{std::string(text)};
  return {std::istream_iterator<std::string>(stream), {}};
}

bool returns_named(const c10::FunctionSchema& schema, int position, std::string_view name) {
  const auto at = static_cast<std::size_t>(position);
  return at < schema.returns().size() && schema.returns()[at].name() == name;
}

}  // namespace

TEST_CASE("an admitted op is a function of tensors and plain numbers, and writes to its first argument or to none") {
  const std::vector<Overload> all = admitted();
  for (const Overload& overload : all) {
    const c10::FunctionSchema& schema = overload.schema();
    INFO(toString(schema));
    for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
      const c10::Argument& argument = schema.arguments()[i];
      INFO(argument.name());
      CHECK(is_plain(*argument.type()));
      CHECK(is_written(argument) == (overload.traits.in_place && i == 0));
    }
    CHECK_FALSE(schema.returns().empty());
    for (const c10::Argument& result : schema.returns()) CHECK(holds_tensors(*result.type()));
    CHECK_FALSE(schema.is_vararg());
  }
  CHECK(all.size() > 400);
}

TEST_CASE("an op draws random numbers if LibTorch says that it takes a seed, and only then") {
  for (const Overload& overload : admitted()) {
    INFO(toString(overload.schema()));
    CHECK(overload.handle.hasTag(at::Tag::nondeterministic_seeded) == (overload.traits.draws != Draws::kNothing));
  }
}

TEST_CASE("an op that behaves otherwise in training has a row that says so") {
  for (const Overload& overload : admitted()) {
    const c10::FunctionSchema& schema = overload.schema();
    const OpTraits& op = overload.traits;
    INFO(toString(schema));
    for (const char* name : {"train", "training", "is_training", "use_input_stats", "observer_on"}) {
      if (kind_of(schema, name)) CHECK(op.training == name);
    }
    for (const char* name : {"p", "dropout", "dropout_p"}) {
      if (op.draws != Draws::kNothing && kind_of(schema, name)) CHECK(op.rate == name);
    }
    // Norms that fold statistics into running ones: by their flag, or by giving new ones.
    bool gives = false;
    for (std::size_t i = 0; i < schema.returns().size(); ++i) {
      if (!returns_named(schema, static_cast<int>(i), "running_mean_out")) continue;
      gives = true;
      CHECK(op.statistics.first_output == static_cast<int>(i));
      CHECK(returns_named(schema, static_cast<int>(i) + 1, "running_var_out"));
    }
    CHECK(gives == (op.statistics.first_output >= 0));
    const bool folds = kind_of(schema, "running_mean") && (gives || !op.training.empty());
    CHECK(folds == !op.statistics.mean.empty());
  }
}

TEST_CASE("what a row says evaluation makes of an op can be made of it") {
  for (const Overload& overload : admitted()) {
    const OpTraits& op = overload.traits;
    INFO(overload.op);
    switch (op.evaluation) {
      case Evaluation::kSame:
        CHECK(op.draws == Draws::kNothing);
        CHECK(op.training.empty());
        CHECK(op.statistics.mean.empty());
        break;
      case Evaluation::kFlagOff:
        CHECK(kind_of(overload.schema(), op.training).has_value());
        CHECK((op.draws == Draws::kNoise || !op.statistics.mean.empty()));
        break;
      case Evaluation::kRateZero:
        CHECK(kind_of(overload.schema(), op.rate).has_value());
        CHECK((op.draws == Draws::kNoise && op.training.empty()));
        break;
      case Evaluation::kMean:
        CHECK((op.draws != Draws::kNothing && op.draws != Draws::kNoise && op.draws != Draws::kOther));
        break;
      case Evaluation::kDoubtful:
        CHECK((op.draws == Draws::kOther || !op.statistics.mean.empty()));
        break;
    }
  }
}

TEST_CASE("arguments that a row names are the schema's, in its order and of the kind that the fact needs") {
  std::set<std::pair<std::string, std::string>> named, found;  // op's name, fact
  for (const Overload& overload : admitted()) {
    const c10::FunctionSchema& schema = overload.schema();
    const std::string base(base_name(overload.op));
    INFO(toString(schema));
    for (const NamingFact& fact : naming_facts()) {
      INFO(fact.name);
      const std::string_view argument = fact.of(overload.traits);
      if (argument.empty()) continue;
      named.emplace(base, fact.name);
      const auto kind = kind_of(schema, argument);
      if (!kind) continue;
      found.emplace(base, fact.name);
      CHECK(fact.kinds.contains(*kind));
    }
    const std::vector<std::string> arguments = words_in(overload.traits.arguments);
    REQUIRE(arguments.size() <= schema.arguments().size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const bool first_in_place = i == 0 && overload.traits.in_place;
      CHECK(schema.arguments()[i].name() == (first_in_place ? "self" : arguments[i]));
    }
  }
  CHECK(named == found);
  CHECK(named.size() > 40);
}

TEST_CASE("the parameters of a distribution are those whose names its mean is taken by") {
  std::map<Draws, std::set<std::string>> names;
  for (const Overload& overload : admitted()) {
    for (const c10::Argument& argument : overload.schema().arguments()) {
      names[overload.traits.draws].insert(argument.name());
    }
  }
  CHECK(names[Draws::kBernoulli].contains("p"));
  CHECK((names[Draws::kUniform].contains("from") && names[Draws::kUniform].contains("to")));
  CHECK(names[Draws::kNormal].contains("mean"));
  CHECK(names[Draws::kExponential].contains("lambd"));
}

TEST_CASE("no integer of an op passes for a factor") {
  for (const Overload& overload : admitted()) {
    INFO(toString(overload.schema()));
    for (const c10::Argument& argument : overload.schema().arguments()) {
      if (!is_factor(overload.op, argument.name())) continue;
      INFO(argument.name());
      CHECK(kind_of(overload.schema(), argument.name()) != c10::TypeKind::IntType);
      CHECK(kind_of(overload.schema(), argument.name()) != c10::TypeKind::SymIntType);
    }
  }
}

TEST_CASE("numbers that calls leave out are what the schemas have by default") {
  int compared = 0;
  for (const Overload& overload : admitted()) {
    INFO(toString(overload.schema()));
    for (const DefaultNumber& number : default_numbers(overload.op)) {
      const std::optional<int> at = overload.schema().argumentIndexWithName(std::string(number.argument));
      if (!at) continue;
      INFO(number.argument);
      const std::optional<c10::IValue>& value =
          overload.schema().arguments()[static_cast<std::size_t>(*at)].default_value();
      REQUIRE((value && value->isScalar()));
      CHECK(value->toScalar().toDouble() == number.value);
      ++compared;
    }
  }
  CHECK(compared > 25);
}

TEST_CASE("what gives elements of its first argument, or one number, gives one tensor") {
  for (const Overload& overload : admitted()) {
    const OpTraits& op = overload.traits;
    const c10::FunctionSchema& schema = overload.schema();
    INFO(toString(schema));
    const bool moves = op.elements != Elements::kComputed, fills = op.constant || !op.constant_of.empty();
    if (!moves && !fills) continue;
    CHECK(schema.returns().size() == 1);
    CHECK(schema.returns()[0].type()->kind() == c10::TypeKind::TensorType);
    if (moves) CHECK(schema.arguments()[0].type()->kind() == c10::TypeKind::TensorType);
  }
}

}  // namespace hfta::fusion
