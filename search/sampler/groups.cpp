#include "search/sampler/groups.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace hfta::search {
namespace {

using trials::Params;

// Parameters with equal conditions.
struct Group {
  std::vector<trials::Condition> when;
  trials::Space space;  // without conditions
  std::unique_ptr<Sampler> sampler;
};

class Grouped final : public Sampler {
 public:
  Grouped(const trials::Space& space, std::uint64_t seed, const SamplerFactory& make) : space_(space) {
    for (const trials::Parameter& parameter : space_) {
      const auto same = [&](const Group& group) { return group.when == parameter.when; };
      auto found = std::find_if(groups_.begin(), groups_.end(), same);
      if (found == groups_.end()) found = groups_.insert(found, Group{parameter.when, {}, nullptr});
      found->space.push_back({parameter.name, parameter.distribution});
    }
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      groups_[i].sampler = make(groups_[i].space, seed_of_group(seed, i), Repeats::kAllowed);
    }
  }

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int /*first*/, int k, const History& history, const Params& given) override {
    std::vector<History> seen(groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      for (const SeenTrial& trial : history) see(seen[i], groups_[i], trial);
    }
    std::vector<Params> asked;
    for (int n = 0; n < k; ++n) {
      asked.push_back(draw(seen, given));
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        see(seen[i], groups_[i], {asked.back()});
      }
    }
    return asked;
  }

 private:
  // The trial as the group's sampler sees it, if it has the group's parameters.
  static void see(History& seen, const Group& group, const SeenTrial& trial) {
    SeenTrial part{{}, trial.curve, trial.values, trial.ended};
    for (const trials::Parameter& parameter : group.space) {
      const trials::ParamValue* value = trials::find_value(trial.params, parameter.name);
      if (value == nullptr) return;
      part.params.emplace_back(parameter.name, *value);
    }
    seen.push_back(std::move(part));
  }

  // Groups whose conditions hold so far are drawn, until none is left: conditions name parameters of other groups. A
  // group counts its own trials: by the study's number, the points of one group that come with a value of another one
  // would be every second of their sequence, say, which lie in a half of the range.
  [[nodiscard]] Params draw(const std::vector<History>& seen, const Params& given) {
    Params all;
    std::vector<bool> drawn(groups_.size(), false);
    for (bool any = true; any;) {
      any = false;
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        if (drawn[i] || !holds(groups_[i].when, all)) continue;
        any = drawn[i] = true;
        const int number = static_cast<int>(seen[i].size());
        Params part = std::move(groups_[i].sampler->ask(number, 1, seen[i], given).at(0));
        std::move(part.begin(), part.end(), std::back_inserter(all));
      }
    }
    return applying(space_, all);
  }

  [[nodiscard]] static bool holds(const std::vector<trials::Condition>& when, const Params& params) {
    return std::all_of(when.begin(), when.end(), [&](const trials::Condition& condition) {
      const trials::ParamValue* value = trials::find_value(params, condition.parameter);
      return value != nullptr &&
             std::find(condition.values.begin(), condition.values.end(), *value) != condition.values.end();
    });
  }

  trials::Space space_;
  std::vector<Group> groups_;
};

}  // namespace

trials::Space without_conditions(trials::Space space) {
  for (trials::Parameter& parameter : space) parameter.when.clear();
  return space;
}

std::uint64_t seed_of_group(std::uint64_t seed, std::size_t group) {
  if (group == 0) return seed;
  return CountedRandom(seed, Stream::kSample, ~std::uint64_t{0}, group).next_u64();
}

std::unique_ptr<Sampler> make_grouped(const trials::Space& space, std::uint64_t seed, const SamplerFactory& make) {
  return std::make_unique<Grouped>(space, seed, make);
}

}  // namespace hfta::search
