#pragma once
/// Methods of search by name: the values that `method` in a config may have.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "search/constraints.hpp"
#include "search/sampler.hpp"
#include "search/scheduler.hpp"

namespace hfta::search {

/// Options of all methods; each method reads its own (Method::fields).
struct MethodOptions {
  HyperbandOptions hyperband = {};
  TpeOptions tpe = {};
  GpOptions gp = {};
  CmaesOptions cmaes = {};
  EvolutionOptions evolution = {};
  Nsga2Options nsga2 = {};
  PbtOptions pbt = {};
  BohbOptions bohb = {};
  DehbOptions dehb = {};
  FreezeThawOptions freeze_thaw = {};
  std::string sampler = "random";  ///< Name of the sampler, for a method that takes another's (takes_sampler).
};

/// The study that a method is made for.
struct SearchTask {
  const trials::Space& space;
  trials::Goal goal = trials::Goal::kMinimize;
  std::uint64_t seed = 0;
  const std::set<std::string>& fixed;  ///< Parameters that a trial cannot change while it trains.
  std::vector<Constraint> constraints = {};
  std::vector<trials::Params> points = {};  ///< Drawn first; what a point lacks is drawn at random.
  History prior = {};                       ///< Trials of an earlier study, which draws of a method that learns see.
  std::set<std::string> splitting = {};     ///< Those of `fixed` that trials must share to train side by side.
  std::function<int()> slots = {};          ///< How many trials train side by side, once some do; unset: unknown.
  std::vector<trials::Goal> goals = {};     ///< Goals of all objectives; empty: there is one, with `goal`.
  Repeats repeats = Repeats::kAvoided;      ///< Whether the sampler may repeat draws of a finite space.
};

/// One number of MethodOptions that a config may set, under the method's name. Its default is MethodOptions'.
struct MethodField {
  const char* name;
  int& (*of)(MethodOptions& options);
  int least, most;
  const char* fallback;  ///< The key whose value is the default; nullptr: the default is a number.
  const char* sentence;
  bool counts_epochs = false;  ///< It may not exceed Method::max_epochs.
};

struct Method {
  const char* name;
  const char* sentence;  ///< "every combination once, the last parameter fastest"
  std::vector<MethodField> fields = {};
  bool has_end = false;     ///< The study ends by itself, even without a run_cap.
  bool needs_list = false;  ///< Every parameter must have finitely many values.
  /// Throws Error{kConfig} for a space or options that it cannot search.
  std::unique_ptr<Sampler> (*sampler)(const MethodOptions& options, const SearchTask& task);
  /// nullptr: `early_stopping` says when trials stop. `run_caps`: every cap the study ever had, ascending.
  std::unique_ptr<Scheduler> (*scheduler)(const MethodOptions& options, const SearchTask& task,
                                          const std::vector<int>& run_caps) = nullptr;
  /// The most epochs that a trial gets, where `scheduler` is set: its field "max_epochs".
  int& (*max_epochs)(MethodOptions& options) = nullptr;
  /// One line about the options for `plan`; nullptr: none. Set if `scheduler` is.
  std::string (*plan_text)(const MethodOptions& options) = nullptr;
  bool copies_trials = false;     ///< A trial may continue from a copy of another, with other parameters: no space with
                                  ///< conditions or constraints, and no repetitions.
  bool takes_conditions = false;  ///< Its sampler knows of conditions; others are made for each group of parameters.
  bool takes_sampler = false;     ///< MethodOptions::sampler chooses its configurations.
  bool takes_objectives = false;  ///< It can search for several objectives, which give trials no single order.
  bool learns = false;            ///< Sampler::learns() of its sampler; if it takes another's, see learns().
  bool reads_curves = false;      ///< It learns from SeenTrial::curve alone: a trial without one tells it nothing.
};

/// The method's sampler, within the space's conditions and the task's constraints (make_restricted()), behind the
/// task's points, and after its prior. Throws Error{kConfig} as validate() of the space, for numbers outside the
/// ranges of the method's fields, and for a sampler that there is not.
[[nodiscard]] std::unique_ptr<Sampler> make_sampler(const Method& method, const MethodOptions& options,
                                                    const SearchTask& task);

/// All methods, in the order of the reference page.
[[nodiscard]] const std::vector<Method>& methods();
/// Whether a method that takes a sampler can take this one's: it has no end, and no scheduler of its own.
[[nodiscard]] bool lends_sampler(const Method& method);
/// Whether the draws of a method depend on results: its sampler is one that learns (Sampler::learns()).
[[nodiscard]] bool learns(const Method& method, const MethodOptions& options);
/// nullptr: there is none of that name.
[[nodiscard]] const Method* find_method(std::string_view name);
/// Throws Error{kConfig} where there is none of that name.
[[nodiscard]] const Method& method(std::string_view name);

}  // namespace hfta::search
