#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "search/choices.hpp"
#include "search/dehb_layout.hpp"
#include "search/sampler.hpp"
#include "search/sampler/differential.hpp"
#include "search/sampler/given.hpp"
#include "search/sampler/groups.hpp"
#include "search/sampler/parzen.hpp"

namespace hfta::search {
namespace {

using trials::Params;

constexpr std::uint64_t kOwnNumbers = 2;  // sub-item of Stream::kTpe, distinct from TPE's and BOHB's
constexpr std::size_t kParents = 3;       // parents that rand/1 needs

// A configuration, and its loss at some budget.
struct Member {
  Genome genome;
  double loss = 0;
};

// The subpopulation at one budget: its members by place, and the number of draws that had a target there.
struct Subpopulation {
  std::vector<Member> members;
  int offspring = 0;
};

class Dehb final : public Sampler {
 public:
  Dehb(trials::Space space, std::uint64_t seed, trials::Goal goal, const DehbOptions& options,
       const HyperbandOptions& brackets, int prior)
      : space_(std::move(space)),
        seed_(seed),
        goal_(goal),
        options_(options),
        layout_(brackets),
        prior_(prior),
        random_(make_random(without_conditions(space_), seed)) {
    for (const trials::Parameter& parameter : space_) {
      scales_.push_back(UnitScale::of(parameter.distribution));
      categories_.push_back(possible_values(parameter.distribution));
    }
  }

  [[nodiscard]] bool learns() const override { return true; }

  std::vector<Params> ask(int first, int k, const History& history, const Params& given) override {
    std::map<int, Subpopulation> all = subpopulations(history);
    std::vector<Params> asked;
    const int begun = static_cast<int>(history.size()) - prior_;  // enqueued trials count in brackets, too
    for (int number = first; number < first + k; ++number) {
      const DehbPosition place = layout_.place(begun + number - first);
      const Params params =
          is_offspring(place) ? draw(number, place, all) : std::move(random_->ask(number, 1, {}).front());
      asked.push_back(trials::applying(space_, with_given(params, given)));
      if (is_offspring(place)) ++all[place.epochs].offspring;
    }
    return asked;
  }

 private:
  [[nodiscard]] static bool is_offspring(const DehbPosition& place) { return !place.first_pass || place.bracket > 0; }

  // Enters trials in the order of their draws, so that nothing depends on which result came first.
  [[nodiscard]] std::map<int, Subpopulation> subpopulations(const History& history) const {
    std::map<int, Subpopulation> all;
    for (std::size_t i = 0; i < history.size(); ++i) {
      const SeenTrial& trial = history[i];
      const int draw = static_cast<int>(i) - prior_;
      const DehbPosition place = draw < 0 ? DehbPosition() : layout_.place(draw);
      std::optional<int> target;
      if (draw >= 0 && is_offspring(place)) target = all[place.epochs].offspring++ % layout_.population(place.epochs);
      if (!trials::is_whole(space_, trial.params)) continue;
      for (const int budget : layout_.budgets()) {
        if ((draw >= 0 && budget < place.epochs) || trial.curve.size() < static_cast<std::size_t>(budget)) continue;
        const double value = trial.curve[static_cast<std::size_t>(budget) - 1];
        if (!std::isfinite(value)) break;
        const Member member{genome_of(trial.params), goal_ == trials::Goal::kMinimize ? value : -value};
        enter(all[budget], layout_.population(budget), member, budget == place.epochs ? target : std::nullopt);
      }
    }
    return all;
  }

  // An offspring takes the place of its target unless it is worse; a promoted trial takes that of the worst once all
  // places are taken.
  static void enter(Subpopulation& population, int size, const Member& member, std::optional<int> target) {
    std::vector<Member>& members = population.members;
    if (static_cast<int>(members.size()) < size && (!target || *target >= static_cast<int>(members.size()))) {
      members.push_back(member);
      return;
    }
    const auto by_loss = [](const Member& a, const Member& b) { return a.loss < b.loss; };
    Member& place = target ? members[static_cast<std::size_t>(*target)]
                           : *std::max_element(members.begin(), members.end(), by_loss);
    if (member.loss <= place.loss) place = member;
  }

  [[nodiscard]] Params draw(int number, const DehbPosition& place, const std::map<int, Subpopulation>& all) const {
    CountedRandom random(seed_, Stream::kTpe, static_cast<std::uint64_t>(number), kOwnNumbers);
    const auto own = all.find(place.epochs);
    const std::size_t turn =
        own == all.end() ? 0 : static_cast<std::size_t>(own->second.offspring % layout_.population(place.epochs));
    const bool has_target = own != all.end() && turn < own->second.members.size();
    const Genome target = has_target ? own->second.members[turn].genome : anywhere(random);
    std::vector<Genome> parents = parents_of(place, all);
    fill(parents, all, random);
    std::vector<std::size_t> chosen;
    while (chosen.size() < kParents) {
      const auto at = static_cast<std::size_t>(random.below(parents.size()));
      if (std::find(chosen.begin(), chosen.end(), at) == chosen.end()) chosen.push_back(at);
    }
    const Genome mutant =
        mutated(parents[chosen[0]], parents[chosen[1]], parents[chosen[2]], options_.mutation_percent / 100.0, random);
    return params_of(crossed(target, mutant, options_.crossover_percent / 100.0, random));
  }

  // The parents in a bracket's first rung are those of the budget itself; above, they are the best of the rung below,
  // as many as Hyperband would promote.
  [[nodiscard]] std::vector<Genome> parents_of(const DehbPosition& place,
                                               const std::map<int, Subpopulation>& all) const {
    int budget = place.epochs;
    if (place.rung > 0) {
      const std::vector<int>& budgets = layout_.budgets();
      budget = *std::prev(std::lower_bound(budgets.begin(), budgets.end(), place.epochs));
    }
    const auto found = all.find(budget);
    if (found == all.end()) return {};
    std::vector<Member> members = found->second.members;
    std::stable_sort(members.begin(), members.end(), [](const Member& a, const Member& b) { return a.loss < b.loss; });
    if (place.rung > 0) members.resize(std::min(members.size(), static_cast<std::size_t>(place.parents)));
    std::vector<Genome> genomes;
    genomes.reserve(members.size());
    for (Member& member : members) genomes.push_back(std::move(member.genome));
    return genomes;
  }

  // Adds parents up to the number that mutation needs: from all subpopulations, or random while these are too small.
  void fill(std::vector<Genome>& parents, const std::map<int, Subpopulation>& all, CountedRandom& random) const {
    std::vector<Genome> everyone;
    for (const auto& [budget, population] : all) {
      for (const Member& member : population.members) everyone.push_back(member.genome);
    }
    while (parents.size() < kParents) {
      parents.push_back(everyone.size() < kParents ? anywhere(random)
                                                   : everyone[static_cast<std::size_t>(random.below(everyone.size()))]);
    }
  }

  [[nodiscard]] Genome anywhere(CountedRandom& random) const {
    Genome genome;
    for (std::size_t i = 0; i < space_.size(); ++i) genome.push_back(random.uniform());
    return genome;
  }

  // Numbers lie on the unit scale, and each of k categories has 1/k of it. What does not apply is in the middle.
  [[nodiscard]] Genome genome_of(const Params& params) const {
    Genome genome;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      const trials::ParamValue* value = trials::find_value(params, space_[i].name);
      if (value == nullptr || scales_[i]) {
        genome.push_back(value == nullptr ? 0.5 : scales_[i]->part_of(*value).middle());
        continue;
      }
      const std::vector<trials::ParamValue>& values = categories_[i];
      const auto at = std::find(values.begin(), values.end(), *value) - values.begin();
      const double place =
          (static_cast<double>(at) + 0.5) / static_cast<double>(std::max<std::size_t>(1, values.size()));
      genome.push_back(std::min(place, 1.0));  // an enqueued value may be one that is never drawn
    }
    return genome;
  }

  [[nodiscard]] Params params_of(const Genome& genome) const {
    Params params;
    for (std::size_t i = 0; i < space_.size(); ++i) {
      if (scales_[i]) {
        params.emplace_back(space_[i].name, scales_[i]->at(genome[i]));
      } else if (categories_[i].empty()) {  // a range of one point
        params.emplace_back(space_[i].name, std::move(random_->ask(0, 1, {}).front()[i].second));
      } else {
        const std::vector<trials::ParamValue>& values = categories_[i];
        const auto at = static_cast<std::size_t>(genome[i] * static_cast<double>(values.size()));
        params.emplace_back(space_[i].name, values[std::min(at, values.size() - 1)]);
      }
    }
    return params;
  }

  trials::Space space_;
  std::uint64_t seed_;
  trials::Goal goal_;
  DehbOptions options_;
  DehbLayout layout_;
  int prior_;  // trials of an earlier study, before those of this one
  std::unique_ptr<Sampler> random_;
  std::vector<std::optional<UnitScale>> scales_;             // unset: categories
  std::vector<std::vector<trials::ParamValue>> categories_;  // categories that can be drawn; none: numbers
};

}  // namespace

Genome mutated(const Genome& a, const Genome& b, const Genome& c, double factor, CountedRandom& random) {
  Genome mutant;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] + factor * (b[i] - c[i]);
    mutant.push_back(x < 0 || x > 1 ? random.uniform() : x);
  }
  return mutant;
}

Genome crossed(const Genome& target, const Genome& mutant, double probability, CountedRandom& random) {
  if (target.empty()) return {};
  const auto always = static_cast<std::size_t>(random.below(target.size()));
  Genome child;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool takes = random.uniform() < probability;
    child.push_back(takes || i == always ? mutant[i] : target[i]);
  }
  return child;
}

std::unique_ptr<Sampler> make_dehb(trials::Space space, std::uint64_t seed, trials::Goal goal,
                                   const DehbOptions& options, const HyperbandOptions& brackets, int prior) {
  return std::make_unique<Dehb>(std::move(space), seed, goal, options, brackets, prior);
}

}  // namespace hfta::search
