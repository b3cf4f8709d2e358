// Damages archives, imports them, and compiles and runs a step of what is taken: pt2_damage SECONDS [SEED]. Every seed
// is one archive, damaged in one way: its bytes, its members, or what its graph means. What comes of it must be a graph
// or an Error{kConfig}, and a step that runs or an Error{kConfig}. With a seed only that one runs.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "mutate.hpp"
#include "pt2_text.hpp"
#include "step.hpp"

namespace hfta::fusion::test {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 13> kArchives = {"torch-2.9",  "torch-2.11", "torch-2.8",   "torch-2.6", "recurrent",
                                                   "attention",  "scopes",     "functional",  "sizes",     "storage",
                                                   "evaluation", "selection",  "control-flow"};

class Fuzzer {
 public:
  Fuzzer() {
    for (const char* name : kArchives) {
      archives_.push_back(bytes_of(golden(name)));
      members_.push_back(unpack(archives_.back()));
    }
  }

  /// Whether the archive was taken; throws what is neither a graph nor an error that a user could read.
  [[nodiscard]] bool run(std::uint64_t seed) const {
    CountedRandom random(seed, Stream::kSample, 0);
    const std::size_t which = random.below(archives_.size());
    const std::vector<std::byte> damaged = damage(which, random);
    try {
      const ExportedModel model = ExportedModel::parse(damaged, "m.pt2");
      const Graph graph = model.graph(options(random));
      (void)graph.signature();
      const std::int64_t n = graph.fixed_batch > 0 ? std::min<std::int64_t>(graph.fixed_batch, 64) : 3;
      steps_ += run_step(with_defaults(graph), n).empty() ? 1 : 0;
      return true;
    } catch (const Error& error) {
      const std::string message = error.what();
      const bool readable = error.kind() == ErrorKind::kConfig && message.find('\n') == std::string::npos;
      if (!readable) throw std::runtime_error("not one line of kConfig: " + message);
      return false;
    }
  }

  /// Steps that ran.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  [[nodiscard]] std::vector<std::byte> damage(std::size_t which, CountedRandom& random) const {
    switch (random.below(4)) {
      case 0:
        return damage_bytes(archives_[which], random);
      case 1:
        return damage_members(members_[which], random);
      default:
        std::vector<Member> members = members_[which];
        mutate(members, random);
        return pack(members);
    }
  }

  static std::vector<std::byte> damage_bytes(std::vector<std::byte> bytes, CountedRandom& random) {
    const std::uint64_t count = 1 + random.below(4);
    for (std::uint64_t i = 0; i < count && !bytes.empty(); ++i) {
      const std::size_t at = place_in(bytes.size(), random);
      switch (random.below(4)) {
        case 0:
          bytes[at] ^= static_cast<std::byte>(1U << random.below(8));
          break;
        case 1:
          bytes[at] = static_cast<std::byte>(random.below(256));
          break;
        case 2:
          bytes.resize(at);
          break;
        default:
          bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    return bytes;
  }

  // The directory at the end decides more than the rest.
  static std::size_t place_in(std::size_t size, CountedRandom& random) {
    constexpr std::size_t kDirectory = 2500;
    if (size > kDirectory && random.below(2) == 0) return size - 1 - random.below(kDirectory);
    return random.below(size);
  }

  static std::vector<std::byte> damage_members(std::vector<Member> members, CountedRandom& random) {
    const std::uint64_t count = 1 + random.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      Member& member = members[random.below(members.size())];
      switch (random.below(8)) {
        case 0:
          member.bytes.resize(member.bytes.empty() ? 0 : random.below(member.bytes.size()));
          break;
        case 1:
          member.name = members[random.below(members.size())].name;
          break;
        case 2:
          member.bytes = members[random.below(members.size())].bytes;
          break;
        default:
          damage_json(members, random);
      }
    }
    return pack(members, random.below(50) == 0 ? "" : "m/");
  }

  static void damage_json(std::vector<Member>& members, CountedRandom& random) {
    std::vector<Member*> documents;
    for (Member& member : members) {
      if (member.name.ends_with(".json")) documents.push_back(&member);
    }
    if (documents.empty()) return;
    Member& document = *documents[random.below(documents.size())];
    Json json = Json::parse(document.bytes, nullptr, false);
    if (json.is_discarded()) return;
    const std::uint64_t count = 1 + random.below(3);
    for (std::uint64_t i = 0; i < count; ++i) {
      Json& target = node_in(json, random);
      target = replacement(json, target, random);
    }
    document.bytes = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

  // A walk from the root that is as likely to stop high as low.
  static Json& node_in(Json& root, CountedRandom& random) {
    Json* node = &root;
    while (node->is_structured() && !node->empty() && random.below(8) != 0) {
      auto child = node->begin();
      std::advance(child, static_cast<std::ptrdiff_t>(random.below(node->size())));
      node = &*child;
    }
    return *node;
  }

  static Json replacement(Json& root, const Json& old, CountedRandom& random) {
    static const std::vector<Json> kValues = {nullptr,
                                              true,
                                              -1,
                                              0,
                                              1,
                                              2,
                                              7,
                                              1e300,
                                              "",
                                              "x",
                                              "Infinity",
                                              Json::array(),
                                              Json::object(),
                                              std::numeric_limits<std::int64_t>::max(),
                                              std::numeric_limits<std::int64_t>::min(),
                                              std::numeric_limits<std::uint64_t>::max(),
                                              std::int64_t{1} << 31,
                                              "Mul(Integer(4611686018427387904), Symbol('s77'))",
                                              "Symbol('u0')"};
    switch (random.below(5)) {
      case 0: {
        const Json copy = node_in(root, random);
        return copy;
      }
      case 1:
        if (old.is_number_integer())
          return static_cast<std::int64_t>(old.get<std::uint64_t>() + random.below(5) - 2);  // wraps
        [[fallthrough]];
      case 2:
        if (old.is_array() && !old.empty()) {
          Json shorter = old;
          shorter.erase(random.below(old.size()));
          return shorter;
        }
        [[fallthrough]];
      case 3:
        if (old.is_object() && !old.empty()) {
          Json other = old;
          auto field = other.begin();
          std::advance(field, static_cast<std::ptrdiff_t>(random.below(other.size())));
          other.erase(field);
          return other;
        }
        [[fallthrough]];
      default:
        return kValues[random.below(kValues.size())];
    }
  }

  static ImportOptions options(CountedRandom& random) {
    ImportOptions options;
    options.fresh = random.below(2) == 0;
    if (random.below(2) == 0) options.dtype = DType::kFloat64;
    if (random.below(4) == 0) options.freeze = {"*.bias"};
    if (random.below(4) == 0) options.bind = {{"*.p", 0.5, ""}};
    if (random.below(8) == 0) options.output = std::int64_t{1};
    return options;
  }

  std::vector<std::vector<std::byte>> archives_;
  std::vector<std::vector<Member>> members_;
  mutable std::uint64_t steps_ = 0;
};

int fuzz(double seconds, std::uint64_t first, bool once) {
  const Fuzzer fuzzer;
  const auto start = std::chrono::steady_clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  std::uint64_t runs = 0;
  std::uint64_t taken = 0;
  for (std::uint64_t seed = first; once ? runs == 0 : passed() < seconds; ++seed, ++runs) {
    try {
      taken += fuzzer.run(seed) ? 1 : 0;
    } catch (const std::exception& error) {
      fmt::print(stderr, "seed {}: {}\n", seed, error.what());
      return 1;
    }
  }
  fmt::print("{} archives, {} of them taken, {} ran a step\n", runs, taken, fuzzer.steps());
  return (taken > 0 && fuzzer.steps() > 0) || once ? 0 : 1;
}

}  // namespace
}  // namespace hfta::fusion::test

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: pt2_damage SECONDS [SEED]\n");
    return 2;
  }
  const bool once = argc > 2;
  const std::uint64_t seed = once ? std::strtoull(argv[2], nullptr, 10) : 1;
  return hfta::fusion::test::fuzz(std::strtod(argv[1], nullptr), seed, once);
}
