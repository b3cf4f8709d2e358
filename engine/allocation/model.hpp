#pragma once
/// A model of the time that an array takes on a set of accelerators.

#include <string>
#include <vector>

#include "engine/allocation/scores.hpp"

namespace hfta::engine {

/// An array that needs accelerators of its own.
struct Request {
  int devices = 1;           ///< Number of accelerators, from 1 to kMostRequested.
  double communication = 0;  ///< The part of its time that it communicates when its links are the machine's best; 0..1.
  bool sensitive = false;    ///< MAPA's flag: whether bandwidth matters to it.
  double seconds = 0;        ///< Its time with such links.
};

/// The score that counts as the bandwidth of a set.
enum class Bandwidth {
  kMapa,  ///< Scores::mapa
  kRings  ///< Scores::rings
};

/// time = seconds * ((1 - c) + c * best / bandwidth), with c the request's communication, and best the bandwidth of the
/// best set of that size of the idle machine. MAPA's own simulator has no such model: its times are constant.
class TimeModel {
 public:
  /// `scores` must outlive it.
  TimeModel(const Scores& scores, Bandwidth which);

  [[nodiscard]] const Scores& scores() const { return scores_; }
  [[nodiscard]] double bandwidth(DeviceSet set) const {
    return which_ == Bandwidth::kMapa ? scores_.mapa(set) : scores_.rings(set);
  }
  /// The request's time on the set over its time on the best one; 1 for one accelerator.
  [[nodiscard]] double slowdown(const Request& request, DeviceSet set) const;

 private:
  const Scores& scores_;
  Bandwidth which_;
  std::vector<double> best_;  ///< Best bandwidth of the idle machine's sets, by size.
};

}  // namespace hfta::engine
