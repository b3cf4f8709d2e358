#pragma once
/// Chooses the trials that get the slots next: those that promise most, new ones included. Internal to freeze_thaw.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "search/freeze_thaw/curve_process.hpp"
#include "search/freeze_thaw/curves.hpp"
#include "search/freeze_thaw/dealer.hpp"
#include "search/sampler.hpp"

namespace hfta::search::freeze_thaw {

/// Whether enough trials have shown a value for forecasts to be made.
[[nodiscard]] bool has_begun(const std::vector<Curve>& curves, const FreezeThawOptions& options);

/// Not thread-safe. Decisions are functions of the arguments, the space, the seed and the options.
class Planner {
 public:
  /// `splitting`: parameters that a device's slots have to share. Throws Error{kConfig} for impossible options.
  Planner(const trials::Space& space, const std::set<std::string>& splitting, std::uint64_t seed,
          const FreezeThawOptions& options);

  [[nodiscard]] const Inputs& inputs() const { return inputs_; }
  /// The configuration of a trial; a parameter that it lacks is in the middle of its range.
  [[nodiscard]] Vector vector_of(const trials::Params& params) const;

  /// REQUIRES a curve with a value. `allowed`: whether a configuration may be a new trial's.
  [[nodiscard]] std::vector<Pick> plan(const std::vector<Curve>& curves, const Request& request,
                                       const std::function<bool(const Vector&)>& allowed) const;

 private:
  [[nodiscard]] std::vector<Vector> next_in_sequence(const std::vector<Curve>& curves) const;
  [[nodiscard]] Candidates candidates_of(const std::vector<Curve>& curves, const std::vector<Vector>& sequence,
                                         std::uint64_t number, const Vector* like,
                                         const std::function<bool(const Vector&)>& allowed) const;
  [[nodiscard]] bool is_like(const Vector& a, const Vector& b) const;

  trials::Space space_;
  Inputs inputs_;
  std::vector<Eigen::Index> splitting_;  ///< Dimensions of the parameters that slots have to share.
  std::uint64_t seed_;
  FreezeThawOptions options_;
};

}  // namespace hfta::search::freeze_thaw
