#include "engine/driver/writing/study_writer.hpp"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/threads.hpp"

namespace hfta::engine {
namespace {

// A transaction costs the disk what it costs however many rows it has: short rounds share one.
constexpr auto kBetweenCommits = std::chrono::milliseconds(200);
// Tries while another program locks the store: how long each lasts, after how many the user is told, and how many are
// made once the run is to end.
constexpr auto kTry = std::chrono::milliseconds(250);
constexpr int kTriesUntilTold = 8;
constexpr auto kBetweenTries = std::chrono::milliseconds(10);  // lets another thread get at the store
constexpr int kTriesAtTheEnd = 40;

// The point at which tests kill a run.
const char* saved_point(storage::StateKind kind) {
  switch (kind) {
    case storage::StateKind::kRunning:
      return "state-saved";
    case storage::StateKind::kFinished:
      return "weights-saved";
    case storage::StateKind::kCopied:
      return "copy-saved";
  }
  return "";
}

}  // namespace

struct StudyWriter::Impl {
  Impl(const Places& all, std::string name) : places(all), study(std::move(name)) {
    if (places.beside) thread = start_thread([this] { loop(); });
  }

  void loop();
  void write(WriteBatch& batch);
  void save(const std::vector<WriteBatch::File>& files);
  [[nodiscard]] bool try_once(const std::function<void()>& work);
  void insist(const std::function<void()>& work);
  // Whether the run ends, and waits for nothing but the store. REQUIRES the mutex.
  [[nodiscard]] bool is_ending() const { return leaving || (places.stop.load() != 0 && (flushing || !places.beside)); }
  [[nodiscard]] bool count_locked_try();
  void rethrow() const {
    if (failure) std::rethrow_exception(failure);
  }

  Places places;
  std::string study;
  mutable std::mutex mutex;  // guards the members below
  std::condition_variable changed;
  WriteBatch waiting;
  bool writing = false, flushing = false, leaving = false;
  int tries_at_the_end = 0;  // tries with the store locked while the run ends
  std::exception_ptr failure;
  std::atomic<bool> has_failed{false}, saves{false};
  std::atomic<bool> is_locked{false};  // the store was locked at the last try
  std::atomic<double> last_saving_seconds{0};
  std::mutex store_mutex;  // guards the store and the next member
  bool look_for_enqueued = false;
  std::mutex sink_mutex;  // guards the sink and the next member
  int locked_tries = 0;   // tries since the store could be used last
  std::thread thread;
};

StudyWriter::StudyWriter(const Places& places, std::string study)
    : impl_(std::make_unique<Impl>(places, std::move(study))) {}

StudyWriter::~StudyWriter() {
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->leaving = true;
  }
  impl_->changed.notify_all();
  if (impl_->thread.joinable()) impl_->thread.join();
}

void StudyWriter::add(WriteBatch batch) {
  if (!impl_->places.beside) return impl_->write(batch);
  const std::lock_guard guard(impl_->mutex);
  impl_->rethrow();
  WriteBatch& waiting = impl_->waiting;
  waiting.append(std::move(batch));
  if (!waiting.states.empty()) impl_->saves = true;
  impl_->changed.notify_all();
}

void StudyWriter::flush() {
  if (!impl_->places.beside) return;
  std::unique_lock guard(impl_->mutex);
  impl_->flushing = true;
  impl_->changed.notify_all();
  impl_->changed.wait(guard, [this] { return impl_->failure || (!impl_->writing && impl_->waiting.empty()); });
  impl_->flushing = false;
  impl_->rethrow();
}

bool StudyWriter::try_flush() {
  if (!impl_->places.beside) return true;
  constexpr auto kLook = std::chrono::milliseconds(20);
  std::unique_lock guard(impl_->mutex);
  impl_->flushing = true;
  impl_->changed.notify_all();
  const auto done = [this] { return !impl_->writing && impl_->waiting.empty(); };
  while (!impl_->failure && !done() && !impl_->is_locked) impl_->changed.wait_for(guard, kLook);
  impl_->flushing = false;
  impl_->rethrow();
  return done();
}

std::optional<std::vector<int>> StudyWriter::add_trials(const std::vector<storage::NewTrial>& trials,
                                                        trials::UtcTime when) {
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->rethrow();
  }
  std::vector<int> numbers;
  const bool added = impl_->try_once([&] { numbers = impl_->places.store.add_trials(impl_->study, trials, when); });
  if (!added) return std::nullopt;
  impl_->places.faults.reach("trials-added");
  return numbers;
}

void StudyWriter::check_held() {
  const std::lock_guard guard(impl_->store_mutex);
  try {
    impl_->places.store.check_held(impl_->study);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kBusy) throw;
  }
}

// Trials that wait may wait longer: nobody waits for a lock here.
std::optional<std::vector<storage::EnqueuedTrial>> StudyWriter::enqueued() {
  const std::unique_lock guard(impl_->store_mutex, std::try_to_lock);
  if (!guard.owns_lock()) return std::nullopt;
  storage::Store& store = impl_->places.store;
  const storage::Store::Patience patience(store, std::chrono::milliseconds(0));
  try {
    impl_->look_for_enqueued |= store.changed_outside();
    if (!impl_->look_for_enqueued) return std::nullopt;
    std::vector<storage::EnqueuedTrial> found = store.enqueued(impl_->study);
    impl_->look_for_enqueued = false;
    return found;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kLocked) throw;
    return std::nullopt;
  }
}

std::optional<bool> StudyWriter::claim(int number, const trials::Params& params, trials::UtcTime when,
                                       const std::string& failure) {
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->rethrow();
  }
  bool ours = false;
  const bool asked =
      impl_->try_once([&] { ours = impl_->places.store.claim(impl_->study, number, params, when, failure); });
  if (!asked) return std::nullopt;
  impl_->places.faults.reach("trial-claimed");
  return ours;
}

bool StudyWriter::failed() const { return impl_->has_failed; }
bool StudyWriter::saving() const { return impl_->saves; }
double StudyWriter::saving_seconds() const { return impl_->last_saving_seconds; }

void StudyWriter::Impl::loop() {
  std::unique_lock guard(mutex);
  for (;;) {
    changed.wait(guard, [this] { return leaving || !waiting.empty(); });
    if (waiting.empty() || failure) break;
    WriteBatch batch = std::exchange(waiting, {});
    writing = true;
    guard.unlock();
    std::exception_ptr thrown;
    try {
      write(batch);
    } catch (...) {
      thrown = std::current_exception();
    }
    guard.lock();
    writing = false;
    saves = !waiting.states.empty();
    failure = thrown;
    has_failed = failure != nullptr;
    changed.notify_all();
    if (failure) break;
    changed.wait_for(guard, kBetweenCommits, [this] { return leaving || flushing; });
  }
}

void StudyWriter::Impl::write(WriteBatch& batch) {
  insist([&] { places.store.check_held(study); });  // a runner that was taken over must not touch files either
  save(batch.kept);
  if (!batch.changes.empty()) {
    insist([&] { places.store.commit(study, batch.changes); });
    places.faults.reach("committed");
  }
  {
    const std::lock_guard guard(sink_mutex);
    for (const Event& event : batch.events) places.events.take(event);
  }
  for (const auto& [number, epoch] : batch.outdated) {
    places.states.of(storage::StateKind::kRunning).remove_up_to(number, epoch);
    places.states.of(storage::StateKind::kFinished).remove_up_to(number, epoch);
  }
  if (!batch.states.empty()) {
    const double start = places.clock.seconds();
    save(batch.states);
    last_saving_seconds = places.clock.seconds() - start;
  }
  for (const auto& [kind, number] : batch.needless) places.states.of(kind).remove(number);
  places.faults.reach("files-removed");
}

void StudyWriter::Impl::save(const std::vector<WriteBatch::File>& files) {
  for (const WriteBatch::File& file : files) {
    places.states.of(file.kind).save(file.number, file.epoch, *file.state);
    places.faults.reach(saved_point(file.kind));
  }
}

// Does `work` with the store. False: another program locks the store.
bool StudyWriter::Impl::try_once(const std::function<void()>& work) {
  bool done = true;
  {
    const std::lock_guard guard(store_mutex);
    const storage::Store::Patience patience(places.store, kTry);
    try {
      work();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kLocked) throw;
      const bool was_last = count_locked_try();
      if (was_last) throw;
      done = false;
    }
  }
  is_locked = !done;
  const std::lock_guard guard(sink_mutex);
  locked_tries = done ? 0 : locked_tries + 1;
  if (locked_tries == kTriesUntilTold) {
    places.events.take(Note{"another program locks the store; training goes on, and its results wait in memory"});
  }
  return done;
}

void StudyWriter::Impl::insist(const std::function<void()>& work) {
  while (!try_once(work)) std::this_thread::sleep_for(kBetweenTries);
}

// Counts a try with the store locked, where the run ends. Returns whether it was the last: the lock is waited for no
// longer.
bool StudyWriter::Impl::count_locked_try() {
  const std::lock_guard guard(mutex);
  if (!is_ending()) return false;
  ++tries_at_the_end;
  return tries_at_the_end >= kTriesAtTheEnd;
}

}  // namespace hfta::engine
