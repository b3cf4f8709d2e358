#include "storage/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "storage/json.hpp"

namespace hfta::storage {

using trials::State;

bool has_ended(State state) { return state == State::kComplete || state == State::kPruned || state == State::kFail; }

std::vector<double> values_to_store(const StateChange& change, std::size_t objectives) {
  const std::vector<double>& values = change.values;
  const bool has_numbers =
      !values.empty() && std::none_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
  if (change.state == State::kComplete && !has_numbers) {
    throw Error(ErrorKind::kInternal, fmt::format("trial {}: COMPLETE without a value", change.trial));
  }
  const bool keeps = change.state == State::kComplete || change.state == State::kPruned;
  if (!keeps || !has_numbers) return {};
  if (values.size() == objectives) return values;
  throw Error(ErrorKind::kInternal, fmt::format("trial {}: found {} values, wanted one for each of {} objectives",
                                                change.trial, values.size(), objectives));
}

Distributions distributions_of(const trials::Space& space) {
  Distributions distributions;
  for (const trials::Parameter& parameter : space) {
    distributions.emplace(parameter.name, to_optuna(parameter.distribution));
  }
  return distributions;
}

EncodedParam encode(const Distributions& distributions, const std::string& name, const trials::ParamValue& value) {
  const auto found = distributions.find(name);
  if (found == distributions.end()) {
    throw Error(ErrorKind::kInternal, fmt::format("parameter {}: not in the study's space", printable(name)));
  }
  try {
    return encode(found->second, value);
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("parameter {}: {}", printable(name), error.what()));
  }
}

void check_words(const StudyRecord& study) {
  (void)distributions_of(study.space);
  if (study.objectives.empty()) throw Error(ErrorKind::kInternal, "study: found no objective");
  for (const trials::Objective& objective : study.objectives) (void)dump(nlohmann::json(objective.metric));
  (void)space_to_json(study.space);
}

Lease next_lease(const std::optional<Lease>& seen, const std::string& token, const std::string& holder) {
  return {seen ? seen->fence + 1 : 1, token, holder};
}

Error no_study(const std::string& store, const std::string& study, const std::vector<std::string>& names) {
  return {ErrorKind::kStorage,
          fmt::format("{}: found no study '{}' in this store{}", store, printable(study), suggestion(study, names))};
}

Error name_is_taken(const std::string& store, const std::string& study) {
  return {ErrorKind::kStorage,
          fmt::format("{}: there is a study '{}' already; choose another name", store, printable(study))};
}

Error name_is_empty(const std::string& store) {
  return {ErrorKind::kStorage, store + ": a study's name is empty, wanted a word"};
}

Error no_trial(int number, std::size_t trials) {
  return {ErrorKind::kInternal, fmt::format("trial {}: not in the store, whose study has {} trials", number, trials)};
}

Error lease_is_lost(const std::string& store, const std::string& study, const std::optional<Lease>& now) {
  const std::string place = fmt::format("{}: study '{}'", store, printable(study));
  if (!now) {
    return {ErrorKind::kBusy, place + ": it was deleted by another program while this one ran it; this one stops"};
  }
  return {ErrorKind::kBusy, fmt::format("{}: it was taken over by {}; this one stops", place, printable(now->holder))};
}

}  // namespace hfta::storage
