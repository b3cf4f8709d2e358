#include "mutate.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace hfta::fusion::test {
namespace {

using Json = nlohmann::json;

constexpr std::array<std::int64_t, 16> kNumbers = {0,
                                                   1,
                                                   -1,
                                                   2,
                                                   3,
                                                   7,
                                                   64,
                                                   -3,
                                                   1 << 20,
                                                   std::int64_t{1} << 31,
                                                   std::int64_t{1} << 32,
                                                   -(std::int64_t{1} << 31),
                                                   (std::int64_t{1} << 31) - 1,
                                                   std::int64_t{1} << 62,
                                                   std::numeric_limits<std::int64_t>::max(),
                                                   std::numeric_limits<std::int64_t>::min()};
constexpr std::array<int, 10> kDTypes = {1, 2, 3, 4, 5, 6, 7, 8, 12, 13};

// A member that need not be there; null then.
Json* field(Json& json, const char* name) { return json.is_object() && json.contains(name) ? &json[name] : nullptr; }

class Mutator {
 public:
  Mutator(Json& model, Json& weights, CountedRandom& random) : model_(model), weights_(weights), random_(random) {}

  std::string one() {
    using Change = std::string (Mutator::*)();
    static constexpr std::array<Change, 14> kChanges = {
        &Mutator::number,  &Mutator::number,   &Mutator::meta,   &Mutator::meta,           &Mutator::exchange_arguments,
        &Mutator::target,  &Mutator::erase,    &Mutator::repeat, &Mutator::name,           &Mutator::exchange_outputs,
        &Mutator::reorder, &Mutator::argument, &Mutator::stored, &Mutator::exchange_stored};
    return (this->*kChanges[below(kChanges.size())])();
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_.below(n)); }
  Json& any(Json& list) { return list[below(list.size())]; }
  std::int64_t any_number() { return kNumbers[below(kNumbers.size())]; }

  Json* graph() {
    Json* module = field(model_, "graph_module");
    return module == nullptr ? nullptr : field(*module, "graph");
  }
  Json* nodes() {
    Json* at = graph();
    Json* list = at == nullptr ? nullptr : field(*at, "nodes");
    return list != nullptr && list->is_array() && !list->empty() ? list : nullptr;
  }
  Json* inputs() {
    Json* all = nodes();
    if (all == nullptr) return nullptr;
    Json* list = field(any(*all), "inputs");
    return list != nullptr && list->is_array() && !list->empty() ? list : nullptr;
  }

  // Every number below `json`.
  static void collect(Json& json, std::vector<Json*>& out) {
    if (json.is_number_integer()) out.push_back(&json);
    if (!json.is_structured()) return;
    for (Json& item : json) collect(item, out);
  }

  std::string number() {
    Json* list = inputs();
    std::vector<Json*> all;
    if (list != nullptr) collect(*list, all);
    if (all.empty()) return "";
    *all[below(all.size())] = any_number();
    return "a number of an argument";
  }

  // Sizes, rank and dtype that the graph declares of a value.
  std::string meta() {
    Json* at = graph();
    Json* values = at == nullptr ? nullptr : field(*at, "tensor_values");
    if (values == nullptr || !values->is_object() || values->empty()) return "";
    auto value = values->begin();
    std::advance(value, static_cast<std::ptrdiff_t>(below(values->size())));
    return changed_meta(*value);
  }
  std::string changed_meta(Json& tensor) {
    Json* sizes = field(tensor, "sizes");
    Json* strides = field(tensor, "strides");
    if (sizes == nullptr || strides == nullptr || !sizes->is_array() || !strides->is_array()) return "";
    switch (below(4)) {
      case 0:
        tensor["dtype"] = kDTypes[below(kDTypes.size())];
        return "a declared dtype";
      case 1:
        sizes->push_back({{"as_int", 2}});
        strides->push_back({{"as_int", 1}});
        return "a declared rank";
      case 2:
        if (sizes->empty() || strides->empty()) return "";
        sizes->erase(0);
        strides->erase(0);
        return "a declared rank";
      default:
        if (sizes->empty()) return "";
        any(*sizes) = {{"as_int", any_number()}};
        return "a declared size";
    }
  }

  std::string exchange_arguments() {
    Json* first = inputs();
    Json* second = inputs();
    if (first == nullptr || second == nullptr) return "";
    Json& a = any(*first);
    Json& b = any(*second);
    if (&a != &b && a.contains("arg") && b.contains("arg")) std::swap(a["arg"], b["arg"]);
    return "exchanged arguments";
  }

  std::string target() {
    Json* all = nodes();
    if (all == nullptr) return "";
    const Json other = any(*all).value("target", Json());
    any(*all)["target"] = other;
    return "a node's op";
  }

  std::string erase() {
    Json* all = nodes();
    if (all == nullptr) return "";
    if (below(3) == 0) {
      all->erase(below(all->size()));
      return "a node erased";
    }
    Json* list = inputs();
    if (list != nullptr) list->erase(below(list->size()));
    return "an argument erased";
  }

  std::string repeat() {
    Json* all = nodes();
    if (all == nullptr) return "";
    if (below(3) == 0) {
      const Json copy = any(*all);
      all->insert(all->begin() + static_cast<std::ptrdiff_t>(below(all->size())), copy);
      return "a node repeated";
    }
    Json* list = inputs();
    if (list != nullptr) {
      const Json copy = any(*list);
      list->push_back(copy);
    }
    return "an argument repeated";
  }

  // A value of another name, made before or after.
  std::string name() {
    Json* list = inputs();
    Json* at = graph();
    Json* values = at == nullptr ? nullptr : field(*at, "tensor_values");
    if (list == nullptr || values == nullptr || !values->is_object() || values->empty()) return "";
    auto other = values->begin();
    std::advance(other, static_cast<std::ptrdiff_t>(below(values->size())));
    Json& input = any(*list);
    Json* arg = field(input, "arg");
    Json* tensor = arg == nullptr ? nullptr : field(*arg, "as_tensor");
    if (tensor != nullptr) (*tensor)["name"] = other.key();
    return "an argument's value";
  }

  std::string exchange_outputs() {
    Json* all = nodes();
    if (all == nullptr) return "";
    Json& a = any(*all);
    Json& b = any(*all);
    if (&a != &b && a.contains("outputs") && b.contains("outputs")) std::swap(a["outputs"], b["outputs"]);
    return "exchanged outputs";
  }

  std::string reorder() {
    Json* all = nodes();
    if (all == nullptr || all->size() < 2) return "";
    std::swap(any(*all), any(*all));
    return "nodes in another order";
  }

  std::string argument() {
    Json* list = inputs();
    if (list == nullptr) return "";
    const std::array<Json, 8> kinds = {Json{{"as_none", true}},
                                       Json{{"as_int", any_number()}},
                                       Json{{"as_float", 0.5}},
                                       Json{{"as_bool", true}},
                                       Json{{"as_ints", {any_number(), 1}}},
                                       Json{{"as_ints", Json::array()}},
                                       Json{{"as_tensors", Json::array()}},
                                       Json{{"as_string", "same"}}};
    any(*list)["arg"] = kinds[below(kinds.size())];
    return "an argument of another kind";
  }

  Json* entry() {
    Json* config = field(weights_, "config");
    if (config == nullptr || !config->is_object() || config->empty()) return nullptr;
    auto at = config->begin();
    std::advance(at, static_cast<std::ptrdiff_t>(below(config->size())));
    return &*at;
  }

  std::string stored() {
    Json* at = entry();
    Json* tensor = at == nullptr ? nullptr : field(*at, "tensor_meta");
    return tensor == nullptr ? "" : "stored: " + changed_meta(*tensor);
  }

  std::string exchange_stored() {
    Json* a = entry();
    Json* b = entry();
    if (a != nullptr && b != nullptr && a != b) std::swap(*a, *b);
    return "exchanged weights";
  }

  Json& model_;
  Json& weights_;
  CountedRandom& random_;
};

std::string* text_of_member(std::vector<Member>& members, const std::string& begin, const std::string& end) {
  const auto is_it = [&](const Member& m) { return m.name.starts_with(begin) && m.name.ends_with(end); };
  const auto found = std::find_if(members.begin(), members.end(), is_it);
  return found == members.end() ? nullptr : &found->bytes;
}

Json parsed(const std::string* text) {
  Json json = text == nullptr ? Json() : Json::parse(*text, nullptr, false);
  return json.is_discarded() ? Json() : json;
}

}  // namespace

std::string mutate(std::vector<Member>& members, CountedRandom& random) {
  std::string* const model_text = text_of_member(members, "models/", ".json");
  std::string* const weights_text = text_of_member(members, "data/weights/", "weights_config.json");
  Json model = parsed(model_text), weights = parsed(weights_text);
  Mutator mutator(model, weights, random);
  std::string words;
  const std::uint64_t count = 1 + random.below(3);
  for (std::uint64_t i = 0; i < count; ++i) words += (words.empty() ? "" : "; ") + mutator.one();
  const auto dump = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  if (model_text != nullptr && !model.is_null()) *model_text = dump(model);
  if (weights_text != nullptr && !weights.is_null()) *weights_text = dump(weights);
  return words;
}

}  // namespace hfta::fusion::test
