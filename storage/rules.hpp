#pragma once
/// Rules that all stores share: which values they accept, and how they refuse others. For the rooms below storage/.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "storage/optuna_encoding.hpp"
#include "storage/records.hpp"

namespace hfta::storage {

/// Whether the state is COMPLETE, PRUNED or FAIL.
[[nodiscard]] bool has_ended(trials::State state);
/// The values that a trial of that state may have by Optuna's rules, one per objective; empty: none. Throws
/// Error{kInternal} for COMPLETE without a number for each, and for more or fewer values than `objectives`.
[[nodiscard]] std::vector<double> values_to_store(const StateChange& change, std::size_t objectives);

/// A space in Optuna's terms, by parameter.
using Distributions = std::map<std::string, OptunaDistribution>;
[[nodiscard]] Distributions distributions_of(const trials::Space& space);
/// encode() for the parameter of that name; its errors name it, and one that the space has not is Error{kInternal}.
[[nodiscard]] EncodedParam encode(const Distributions& distributions, const std::string& name,
                                  const trials::ParamValue& value);

/// Throws Error{kStorage} if text of the metric or the space is not UTF-8, Error{kInternal} for a choice that is a
/// non-finite number.
void check_words(const StudyRecord& study);

/// The lease that follows `seen`.
[[nodiscard]] Lease next_lease(const std::optional<Lease>& seen, const std::string& token, const std::string& holder);

// ---- Refusals; `store` is its name in messages, printable ----

/// `names`: those of the existing studies, printable.
[[nodiscard]] Error no_study(const std::string& store, const std::string& study, const std::vector<std::string>& names);
[[nodiscard]] Error name_is_taken(const std::string& store, const std::string& study);
[[nodiscard]] Error name_is_empty(const std::string& store);
[[nodiscard]] Error no_trial(int number, std::size_t trials);
/// `now`: the current lease of the study; nullopt: it is gone.
[[nodiscard]] Error lease_is_lost(const std::string& store, const std::string& study, const std::optional<Lease>& now);

}  // namespace hfta::storage
