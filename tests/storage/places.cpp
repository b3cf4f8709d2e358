#include "tests/storage/places.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <vector>

#include "base/temporary_folder.hpp"
#include "storage/json.hpp"
#include "storage/memory/memory_store.hpp"
#include "storage/sqlite/connection.hpp"
#include "storage/sqlite/holder_file.hpp"
#include "storage/sqlite/sqlite_store.hpp"
#include "tests/storage/samples.hpp"

namespace hfta::storage::testing {
namespace {

namespace fs = std::filesystem;

Lease taken(Store& store, const std::string& study, const std::string& token, const std::string& holder) {
  const std::optional<Lease> lease = store.take_lease(study, std::nullopt, token, holder);
  if (!lease) throw std::logic_error("somebody has had the study");
  return *lease;
}

class SqlitePlace final : public StorePlace {
 public:
  [[nodiscard]] std::unique_ptr<Store> open() override {
    return std::make_unique<SqliteStore>(SqliteStore::open(file_, SqliteStore::Mode::kCreate));
  }
  [[nodiscard]] std::string name() const override { return file_.string(); }
  void enqueue(const std::string& study, const trials::Params& params) override {
    nlohmann::json fixed = nlohmann::json::object();
    for (const auto& [parameter, value] : params) fixed[parameter] = param_to_json(value);
    Connection connection(file_, true, false);
    Transaction transaction(connection, Transaction::Kind::kWrite);
    connection
        .query(
            "INSERT INTO trials (number, study_id, state) SELECT (SELECT count(*) FROM trials t WHERE"
            " t.study_id = s.study_id), study_id, 'WAITING' FROM studies s WHERE study_name = ?1")
        .bind(study)
        .run();
    connection
        .query("INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) VALUES (?1, 'fixed_params', ?2)")
        .bind(connection.last_id(), fixed.dump())
        .run();
    transaction.commit();
  }
  Lease lose_holder(const std::string& study, bool killed) override {
    const std::unique_ptr<Store> store = open();
    const std::string holder = "process 1 on host " + (killed ? host_name() : std::string("bert"));
    const fs::path folder = store->states(study).folder;
    fs::create_directories(folder);
    write_file(folder / holder_file("lost-1"), holder + "\n0\n");  // nobody locks it, nobody writes to it
    return taken(*store, study, "lost-1", holder);
  }

 private:
  TemporaryFolder folder_{"hfta-contract"};
  fs::path file_ = folder_.path() / "s.db";
};

class MemoryPlace final : public StorePlace {
 public:
  [[nodiscard]] std::unique_ptr<Store> open() override { return std::make_unique<MemoryStore>(studies_); }
  [[nodiscard]] std::string name() const override { return "memory"; }
  void enqueue(const std::string& study, const trials::Params& params) override { studies_.enqueue(study, params); }
  Lease lose_holder(const std::string& study, bool killed) override {
    const std::unique_ptr<Store> store = open();
    lost_.push_back(store->marks(study)->leave(1));
    studies_.befall(study, killed ? MemoryStudies::Fate::kKilled : MemoryStudies::Fate::kHangs);
    return taken(*store, study, lost_.back()->token(), lost_.back()->holder());
  }

 private:
  MemoryStudies studies_;
  std::vector<std::unique_ptr<HolderMark>> lost_;
};

template <typename Place>
std::unique_ptr<StorePlace> make() {
  return std::make_unique<Place>();
}

constexpr StoreKind kKinds[] = {{"sqlite", make<SqlitePlace>}, {"memory", make<MemoryPlace>}};
static_assert(std::size(kKinds) == kStoreKinds);

std::string bits(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{:016x}", std::bit_cast<std::uint64_t>(value));
}
std::string bits(const std::optional<double>& value) { return value ? bits(*value) : "none"; }

std::string text(const std::optional<trials::UtcTime>& time) {
  return time ? std::to_string(time->time_since_epoch().count()) : "never";
}

std::string text(const trials::ParamValue& value) {
  const auto* real = std::get_if<double>(&value);
  return fmt::format("{}:{}", value.index(), real != nullptr ? bits(*real) : trials::to_text(value));
}

std::string text(const trials::Params& params) {
  std::string out;
  for (const auto& [name, value] : params) out += fmt::format(" {}={}", name, text(value));
  return out;
}

std::string text(const std::map<std::string, double>& metrics) {
  std::string out;
  for (const auto& [name, value] : metrics) out += fmt::format(" {}={}", name, bits(value));
  return out;
}

std::string text(const trials::Trial& t) {
  std::string out =
      fmt::format("trial {} seen {} ended {} {} {} {} [{}] {} {}{}\n", t.number, t.seen_rounds.value_or(-1),
                  t.ended_round.value_or(-1), trials::name_of(t.state), t.enqueued, bits(t.value()), t.reason,
                  text(t.started), text(t.completed), text(t.params));
  for (std::size_t i = 1; i < t.values.size(); ++i) out += "  and " + bits(t.values[i]) + "\n";
  for (const trials::Copy& copy : t.copies) {
    out += fmt::format("  copy of {} after {}:{}\n", copy.source, copy.epoch, text(copy.params));
  }
  for (const trials::EpochRecord& epoch : t.epochs) out += fmt::format("  {}:{}\n", epoch.epoch, text(epoch.metrics));
  if (!t.test_metrics.empty()) out += fmt::format("  test:{}\n", text(t.test_metrics));
  return out;
}

std::string text(const trials::Objectives& objectives) {
  std::string out;
  for (const trials::Objective& one : objectives) out += fmt::format(" {} {}", one.metric, static_cast<int>(one.goal));
  return out;
}

std::string text(const StudyRecord& study) {
  std::string out = fmt::format("{}{} '{}' '{}'", study.name, text(study.objectives), study.config, study.config_json);
  for (const int cap : study.run_caps) out += fmt::format(" {}", cap);
  for (const trials::Parameter& p : study.space) {
    const trials::Distribution& d = p.distribution;
    out += fmt::format("\n  {} {} {} {} {} {} {} {}", p.name, trials::name_of(d.kind), bits(d.min), bits(d.max),
                       bits(d.mu), bits(d.sigma), bits(d.q), d.integer);
    for (const trials::ParamValue& value : d.values) out += " " + text(value);
    for (const double probability : d.probabilities) out += " " + bits(probability);
  }
  return out + "\n";
}

}  // namespace

const StoreKind& store_kind(int index) { return kKinds[index]; }

std::string reading_of(Store& store, const std::string& study) {
  const std::optional<StudyRecord> record = store.find(study);
  if (!record) return study + ": none\n";
  std::string out = text(*record);
  for (const trials::Trial& trial : store.trials(study)) out += text(trial);
  out += "draws";
  for (const int number : store.draws(study)) out += fmt::format(" {}", number);
  for (const EnqueuedTrial& trial : store.enqueued(study)) {
    trials::Params wanted = trial.params;  // JSON has no order
    std::sort(wanted.begin(), wanted.end());
    out += fmt::format("\nwaits {}{}", trial.number, text(wanted));
  }
  for (const ArrayRecord& a : store.arrays(study)) {
    out += fmt::format("\narray {} {} {} {} {} {} {}", a.array, a.device, a.partition, a.width, a.chunk, a.threads,
                       a.choices_json);
  }
  for (const RoundRecord& r : store.rounds(study)) {
    out += fmt::format("\nround {} {} {} {} {}", r.round, r.array, r.width, r.occupied, bits(r.seconds));
  }
  for (const OccupancyRecord& o : store.occupancy(study)) {
    out += fmt::format("\nslot {} {} {} {} {}", o.round, o.array, o.slot, o.trial, o.epoch);
  }
  return out + "\n";
}

std::string reading_of(Store& store) {
  std::string out;
  for (const StudySummary& s : store.studies()) {
    out += fmt::format("study {}{} {} {}", s.name, text(s.objectives), bits(s.best), text(s.last_change));
    for (const auto& [state, count] : s.counts) out += fmt::format(" {} {}", count, state);
    const std::optional<Lease> lease = store.lease(s.name);
    out += lease ? fmt::format(" lease {} {} {}\n", lease->fence, lease->token, lease->holder) : "\n";
  }
  for (const StudySummary& s : store.studies()) out += reading_of(store, s.name);
  return out;
}

}  // namespace hfta::storage::testing
