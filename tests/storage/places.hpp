#pragma once
/// The stores that Store's contract is tried on, and what other programs do to them.

#include <memory>
#include <string>

#include "storage/store.hpp"

namespace hfta::storage::testing {

/// A store, empty at first.
class StorePlace {
 public:
  virtual ~StorePlace() = default;
  /// A connection: as many as a test likes, one after the other or side by side, from any thread.
  [[nodiscard]] virtual std::unique_ptr<Store> open() = 0;
  /// What errors call it.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Another program adds a trial that waits, as Optuna's enqueue_trial does.
  virtual void enqueue(const std::string& study, const trials::Params& params) = 0;
  /// Another process takes the study, which nobody has had yet, and then is killed, or hangs (`killed` false).
  virtual Lease lose_holder(const std::string& study, bool killed) = 0;
};

struct StoreKind {
  const char* name;
  std::unique_ptr<StorePlace> (*make)();
};
/// All there are.
inline constexpr int kStoreKinds = 2;
[[nodiscard]] const StoreKind& store_kind(int index);

/// Everything that a store says of a study, as text; numbers to the last bit.
[[nodiscard]] std::string reading_of(Store& store, const std::string& study);
/// The same of all studies and of the list of them.
[[nodiscard]] std::string reading_of(Store& store);

}  // namespace hfta::storage::testing
