/// Store's contract about who runs a study, on every store: leases, and the marks of their holders.
#include <memory>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.hpp"
#include "tests/storage/checks.hpp"
#include "tests/storage/places.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

constexpr const char* kOther = "process 12 on host bert";
constexpr double kPeriod = 0.02;  // seconds between beats

/// Each store in turn.
std::unique_ptr<StorePlace> any_store() {
  const StoreKind& kind = store_kind(GENERATE(range(0, kStoreKinds)));
  UNSCOPED_INFO("store: " << kind.name);
  return kind.make();
}

struct Write {
  const char* name;
  void (*run)(Store&);
};

const Write kWrites[] = {{"commit", [](Store& store) { store.commit("s", sample_round(1)); }},
                         {"add_trials", [](Store& store) { (void)store.add_trials("s", {{params_of(1)}}, at(40)); }},
                         {"claim", [](Store& store) { (void)store.claim("s", 0, params_of(1), at(40), ""); }},
                         {"update",
                          [](Store& store) {
                            StudyRecord study = sample_study("s");
                            study.config = "edited";
                            store.update(study);
                          }},
                         {"check_held", [](Store& store) { store.check_held("s"); }}};

TEST_CASE("contract: taking a study is compare and swap", "[contract][lease]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> a = place->open(), b = place->open();
  CHECK_FALSE(a->lease("s"));
  const auto first = a->take_lease("s", std::nullopt, "first", "A");
  CHECK((first == Lease{1, "first", "A"}));
  CHECK((b->lease("s") == first));
  const std::optional<Lease> wrong[] = {std::nullopt, Lease{0, "first", "A"}, Lease{2, "first", "A"},
                                        Lease{1, "another", "A"}};
  for (const std::optional<Lease>& seen : wrong) CHECK_FALSE(b->take_lease("s", seen, "second", "B"));
  CHECK((b->lease("s") == first));
  CHECK((b->take_lease("s", first, "second", "B") == Lease{2, "second", "B"}));
  CHECK_FALSE(a->take_lease("s", first, "third", "A"));
  CHECK_FALSE(a->lease("t"));  // by study
  CHECK((a->take_lease("t", std::nullopt, "t1", "A") == Lease{1, "t1", "A"}));
  CHECK((b->lease("s")->fence == 2));
}

TEST_CASE("contract: the holder writes; once taken over from it writes nothing and names the new one",
          "[contract][lease]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> holder = place->open(), other = place->open();
  const Lease lease = holder->take_lease("s", std::nullopt, "first", "process 11 on host adele").value();
  holder->hold("s", lease);
  holder->create(sample_study("s"));
  (void)holder->add_trials("s", std::vector<NewTrial>(kSampleTrials, {params_of(0)}), at(0));
  for (const Write& write : kWrites) CHECK_NOTHROW(write.run(*holder));
  CHECK_NOTHROW(other->commit("s", sample_round(0)));  // who holds nothing is asked for nothing
  const auto taken = other->take_lease("s", lease, "second", kOther);
  REQUIRE(taken);
  const std::string before = reading_of(*other);
  for (const Write& refused : kWrites) {
    INFO(refused.name);
    const std::string message = message_of(ErrorKind::kBusy, [&] { refused.run(*holder); });
    CHECK_THAT(message, Catch::Contains(place->name()) && Catch::Contains("study 's'") &&
                            Catch::Contains("taken over by process 12 on host bert") &&
                            Catch::Contains("this one stops"));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(reading_of(*other) == before);
  }
  CHECK_NOTHROW(holder->create(sample_study("t")));  // another study, of which it holds no lease
  other->hold("s", *taken);
  for (const Write& allowed : kWrites) CHECK_NOTHROW(allowed.run(*other));
}

TEST_CASE("contract: a study that is not there yet is made by the holder alone", "[contract][lease]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> late = place->open(), holder = place->open();
  const auto first = late->take_lease("s", std::nullopt, "first", "A");
  late->hold("s", first.value());
  const auto second = holder->take_lease("s", first, "second", kOther);
  holder->hold("s", second.value());
  CHECK_THAT(message_of(ErrorKind::kBusy, [&] { late->create(sample_study("s")); }), Catch::Contains(kOther));
  CHECK_FALSE(late->find("s"));
  CHECK_NOTHROW(holder->create(sample_study("s")));
}

TEST_CASE("contract: hostile names of holders do not reach the terminal", "[contract][lease]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> store = place->open();
  const auto first = store->take_lease("s", std::nullopt, "first", "A");
  store->hold("s", first.value());
  REQUIRE(store->take_lease("s", first, "second", "\x1b[2J\nB'; DROP TABLE hfta_leases; --"));
  const std::string message = message_of(ErrorKind::kBusy, [&] { store->check_held("s"); });
  CHECK_THAT(message, Catch::Contains("\\x1b[2J\\x0aB'; DROP"));
  CHECK(store->lease("s")->fence == 2);
}

/// Whether the mark that goes with `lease` beats within some five hundred periods.
bool beats(HolderMarks& marks, const Lease& lease) {
  const auto first = marks.look(lease);
  for (int looks = 0; first && looks < 1000; ++looks) {
    const auto now = marks.look(lease);
    if (!now || now->dead) return false;
    if (now->beat != first->beat) return true;
    SystemClock clock;
    for (const double began = clock.seconds(); clock.seconds() - began < kPeriod / 2;) std::this_thread::yield();
  }
  return false;
}

TEST_CASE("contract: a mark beats as long as it is there, and others see it", "[contract][lease]") {
  const std::unique_ptr<StorePlace> place = any_store();
  const std::unique_ptr<Store> holder = place->open(), other = place->open();
  const SystemClock clock;
  const std::unique_ptr<HolderMarks> marks = holder->marks("s"), seen = other->marks("s");
  CHECK(marks->names().empty());
  std::unique_ptr<HolderMark> mark = marks->leave(kPeriod);
  const std::unique_ptr<HolderMark> another = marks->leave(kPeriod);
  CHECK(mark->token() != another->token());
  CHECK_FALSE(mark->holder().empty());
  CHECK(seen->names().size() == 2);
  CHECK(other->marks("t")->names().empty());
  const Lease lease = holder->take_lease("s", std::nullopt, mark->token(), mark->holder()).value();
  CHECK(beats(*seen, lease));
  const auto sign = other->life_sign("s", lease, clock);
  REQUIRE(sign);
  CHECK(sign->alive);
  CHECK(sign->silence < 60);
  CHECK_FALSE(other->life_sign("t", lease, clock));
  CHECK_NOTHROW(mark->check_held());
  mark.reset();
  CHECK_FALSE(seen->look(lease));
  CHECK_FALSE(other->life_sign("s", lease, clock));
  CHECK(seen->names().size() == 1);
  for (const std::string& name : seen->names()) seen->remove(name);
  CHECK_NOTHROW(seen->remove("lease.nobody"));
  CHECK(seen->names().empty());
  CHECK_THAT(message_of(ErrorKind::kStorage, [&] { another->check_held(); }), Catch::Contains("is gone"));
}

TEST_CASE("contract: a holder that was killed is known to be dead, one that hangs stands still", "[contract][lease]") {
  const bool killed = GENERATE(true, false);
  const std::unique_ptr<StorePlace> place = any_store();
  const Lease lease = place->lose_holder("s", killed);
  const std::unique_ptr<Store> store = place->open();
  CHECK((store->lease("s") == lease));
  const std::unique_ptr<HolderMarks> marks = store->marks("s");
  const auto first = marks->look(lease);
  REQUIRE(first);
  CHECK(first->dead == killed);
  const auto then = marks->look(lease);
  REQUIRE(then);
  CHECK(then->beat == first->beat);
  if (killed) CHECK_FALSE(store->life_sign("s", lease, SystemClock())->alive);
  Lease nobody = lease;
  nobody.token = "../../nobody";
  CHECK_FALSE(marks->look(nobody));
  CHECK_FALSE(store->life_sign("s", nobody, SystemClock()));
  CHECK(marks->names().size() == 1);
}

}  // namespace
}  // namespace hfta::storage::testing
