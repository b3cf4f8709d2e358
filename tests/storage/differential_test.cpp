/// Random sequences of what drivers and other programs do, on every store at once: each answers, refuses and reads as
/// the first does.
///
/// HFTA_SEQUENCES says how many (60); HFTA_FIRST_SEQUENCE from which on, to see one again.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>

#include "base/random.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/places.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

constexpr int kSteps = 60;
constexpr int kConnections = 2;
const std::vector<std::string> kNames = {"one", "two", "three"};

/// One store, its connections, and the leases that each has taken.
struct Party {
  explicit Party(const StoreKind& kind) : name(kind.name), place(kind.make()) {
    for (int i = 0; i < kConnections; ++i) connections.push_back(place->open());
  }
  std::string name;
  std::unique_ptr<StorePlace> place;
  std::vector<std::unique_ptr<Store>> connections;
};

/// What a step came to: its answer, or its refusal with the store's name taken out.
std::string outcome(Party& party, const std::function<std::string()>& step) {
  try {
    return "answered " + step();
  } catch (const Error& error) {
    std::string words = error.what();
    const std::string name = party.place->name();
    for (std::size_t at = words.find(name); at != words.npos; at = words.find(name)) {
      words.replace(at, name.size(), "STORE");
    }
    return fmt::format("refused {}: {}", static_cast<int>(error.kind()), words);
  }
}

/// Draws steps. What a draw depends on is read from the first store, so that all get the same step.
class Steps {
 public:
  explicit Steps(std::uint64_t sequence) : random_(20261123, Stream::kSample, sequence) {}

  using Step = std::function<std::string(Party&, Store&)>;
  [[nodiscard]] Step next(Store& first);
  [[nodiscard]] std::size_t below(std::size_t bound) { return random_.below(bound); }

 private:
  [[nodiscard]] bool chance(double share) { return random_.uniform() < share; }
  [[nodiscard]] int small(int bound) { return static_cast<int>(random_.below(static_cast<std::uint64_t>(bound))); }
  [[nodiscard]] trials::UtcTime time() { return at(0.25 * small(4000)); }
  [[nodiscard]] double number() {
    const double odd[] = {-0.0, std::nan(""), std::numeric_limits<double>::infinity(),
                          -std::numeric_limits<double>::infinity()};
    return chance(0.2) ? odd[small(4)] : random_.normal();
  }
  [[nodiscard]] trials::Params params();
  [[nodiscard]] int trial_of(const std::vector<int>& drawn) {
    if (drawn.empty() || chance(0.03)) return chance(0.5) ? -1 : 1000;
    return drawn[below(drawn.size())];
  }
  [[nodiscard]] Changes changes(const std::vector<int>& drawn);

  CountedRandom random_;
};

trials::Params Steps::params() {
  trials::Params all = params_of(small(6));
  if (chance(0.3)) all.erase(all.begin() + small(8), all.end());
  if (chance(0.05)) all.emplace_back("unknown", 1.0);
  if (chance(0.05) && !all.empty()) all.front().second = std::string("sgd");
  return all;
}

Changes Steps::changes(const std::vector<int>& drawn) {
  using trials::State;
  constexpr State kStates[] = {State::kRunning, State::kComplete, State::kPruned, State::kFail};
  Changes made;
  for (int i = small(3); i > 0; --i) made.started.emplace_back(trial_of(drawn), time());
  for (int i = small(5); i > 0; --i) {
    const std::optional<double> value = chance(0.8) ? std::optional(number()) : std::nullopt;
    made.epochs.push_back(
        {trial_of(drawn), {1 + small(5), {{"val_accuracy", number()}, {chance(0.5) ? "a" : "b", number()}}}, value});
  }
  for (int i = small(2); i > 0; --i) {
    made.copies.push_back({trial_of(drawn), {1 + small(5), trial_of(drawn), params()}});
  }
  for (int i = small(3); i > 0; --i) {
    const State state = kStates[small(4)];
    const bool nearly_always = state == State::kComplete && chance(0.9);
    made.states.push_back(
        {trial_of(drawn), state, {nearly_always ? 0.125 * small(9) : number()}, chance(0.3) ? "it broke" : "", time()});
    if (!nearly_always && chance(0.3)) made.states.back().values.clear();
    if (chance(0.3)) made.states.back().round = small(50);
    if (chance(0.4)) made.states.back().values.push_back(chance(0.9) ? 0.125 * small(9) : number());
  }
  for (int i = small(2); i > 0; --i) {
    made.arrays.push_back({small(3), "cpu", "hidden=64", small(9), small(9), small(9), chance(0.5) ? "{}" : "[]"});
  }
  for (int i = small(2); i > 0; --i) made.rounds.push_back({small(6), small(3), small(9), small(9), -0.125 * small(3)});
  for (int i = small(4); i > 0; --i)
    made.occupancy.push_back({small(3), small(6), small(4), trial_of(drawn), small(9)});
  if (chance(0.1)) made.test_metrics[trial_of(drawn)] = {{chance(0.5) ? "test_a" : "test_b", number()}};
  return made;
}

std::string joined(const std::vector<int>& numbers) {
  std::string out;
  for (const int number : numbers) out += fmt::format("{} ", number);
  return out;
}

std::string shown(const std::optional<Lease>& lease) {
  return lease ? fmt::format("{} {} {}", lease->fence, lease->token, lease->holder) : "none";
}

Steps::Step Steps::next(Store& first) {
  const std::string study = kNames[below(kNames.size())];
  const bool is_there = first.find(study).has_value();
  const std::vector<int> drawn = is_there ? first.draws(study) : std::vector<int>();
  switch (small(12)) {
    case 0: {
      StudyRecord record = sample_study(chance(0.1) ? "" : study);
      if (chance(0.1)) record.objectives.front().metric = "\xff";
      if (chance(0.5)) record.objectives.front().goal = trials::Goal::kMinimize;
      if (chance(0.4)) record.objectives.push_back({chance(0.1) ? "\xff" : "parameters", trials::Goal::kMinimize});
      if (chance(0.05)) record.objectives.clear();
      return [=](Party&, Store& store) { return store.create(record), "created"; };
    }
    case 1: {
      StudyRecord record = sample_study(study);
      record.config = fmt::format("edit {}", small(100));
      record.run_caps.push_back(small(100));
      record.space.clear();
      return [=](Party&, Store& store) { return store.update(record), "updated"; };
    }
    case 2:
    case 3: {
      std::vector<NewTrial> added;
      for (int i = small(4); i > 0; --i)
        added.push_back({params(), chance(0.3) ? std::optional(small(50)) : std::nullopt});
      const trials::UtcTime when = time();
      return [=](Party&, Store& store) { return joined(store.add_trials(study, added, when)); };
    }
    case 4: {
      if (!is_there) break;
      const trials::Params wanted = {{"uniform", 0.5}, {"other", std::int64_t{small(9)}}};
      return [=](Party& party, Store&) { return party.place->enqueue(study, wanted), "enqueued"; };
    }
    case 5: {
      const std::vector<EnqueuedTrial> waiting = is_there ? first.enqueued(study) : std::vector<EnqueuedTrial>();
      const int number = waiting.empty() || chance(0.2) ? trial_of(drawn) : waiting[below(waiting.size())].number;
      const trials::Params given = params();
      const trials::UtcTime when = time();
      const std::string failure = chance(0.3) ? "cannot be tried" : "";
      return [=](Party&, Store& store) { return fmt::format("{}", store.claim(study, number, given, when, failure)); };
    }
    case 6: {
      const bool stale = chance(0.3);
      std::optional<Lease> seen = first.lease(study);
      if (stale) seen = Lease{small(3), "stale", "nobody"};
      const std::string token = fmt::format("token-{}", random_.below(1'000'000));
      return [=](Party&, Store& store) { return shown(store.take_lease(study, seen, token, "a holder")); };
    }
    case 7: {
      const std::optional<Lease> lease = first.lease(study);
      if (!lease) break;
      return [=](Party&, Store& store) { return store.hold(study, *lease), "held"; };
    }
    case 8:
      return [=](Party&, Store& store) { return store.check_held(study), "holds"; };
    case 9:
      return [](Party&, Store& store) { return fmt::format("{}", store.changed_outside()); };
    default: {
      const Changes made = changes(drawn);
      return [=](Party&, Store& store) { return store.commit(study, made), "committed"; };
    }
  }
  return [=](Party&, Store& store) { return reading_of(store, study); };
}

void run_sequence(std::uint64_t sequence) {
  std::vector<std::unique_ptr<Party>> parties;
  for (int kind = 0; kind < kStoreKinds; ++kind) parties.push_back(std::make_unique<Party>(store_kind(kind)));
  const std::unique_ptr<Store> looker = parties.front()->place->open();  // not one whose changed_outside() is asked
  Steps steps(sequence);
  for (int i = 0; i < kSteps; ++i) {
    const Steps::Step step = steps.next(*looker);
    const std::size_t by = steps.below(kConnections), read_by = steps.below(kConnections);
    std::string answer, reading;
    for (const auto& party : parties) {
      INFO("step " << i << " on " << party->name);
      const std::string found = outcome(*party, [&] { return step(*party, *party->connections[by]); });
      const std::string read = reading_of(*party->connections[read_by]);
      if (party == parties.front()) {
        answer = found;
        reading = read;
      }
      REQUIRE(found == answer);
      REQUIRE(read == reading);
    }
  }
}

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

TEST_CASE("differential: every store answers, refuses and reads alike, whatever is asked in whatever order",
          "[differential]") {
  const std::uint64_t first = number_from("HFTA_FIRST_SEQUENCE", 0), count = number_from("HFTA_SEQUENCES", 60);
  for (std::uint64_t sequence = first; sequence < first + count; ++sequence) {
    INFO("HFTA_FIRST_SEQUENCE=" << sequence << " HFTA_SEQUENCES=1");
    run_sequence(sequence);
  }
}

}  // namespace
}  // namespace hfta::storage::testing
