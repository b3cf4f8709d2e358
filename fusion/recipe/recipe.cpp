#include "fusion/recipe.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hfta::fusion {
namespace {

double linear_factor(double from, double to, double total, double t) {
  if (total <= 0) return to;
  return from + (to - from) * std::min(t, total) / total;
}

// `t` and `duration` are counted from the end of the warm-up.
double scheduled(const Schedule& schedule, double base, double t, double duration) {
  switch (schedule.kind) {
    case ScheduleKind::kConstant:
      return base;
    case ScheduleKind::kStep:
      return base * std::pow(schedule.gamma, std::floor(t / schedule.step_size));
    case ScheduleKind::kLinear:
      return base * linear_factor(schedule.start_factor, schedule.end_factor, schedule.total_iters, t);
    case ScheduleKind::kCosine: {
      const double t_max = schedule.t_max > 0 ? schedule.t_max : duration;
      if (t_max <= 0) return base;
      // (1 + cos(pi t / T)) / 2 as a square of a sine: no cancellation near T, and exactly eta_min at T.
      const double root = std::sin(std::numbers::pi * (t_max - t) / (2 * t_max));
      return schedule.eta_min + (base - schedule.eta_min) * root * root;
    }
  }
  return base;
}

}  // namespace

const char* name_of(ScheduleKind kind) {
  switch (kind) {
    case ScheduleKind::kConstant:
      return "constant";
    case ScheduleKind::kStep:
      return "step";
    case ScheduleKind::kCosine:
      return "cosine";
    case ScheduleKind::kLinear:
      return "linear";
  }
  return "?";
}

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return "float32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBfloat16:
      return "bfloat16";
  }
  return "?";
}

double learning_rate(const Schedule& schedule, double base, double t, double duration) {
  if (t < schedule.warmup) return base * linear_factor(schedule.start_factor, 1, schedule.warmup, t);
  return scheduled(schedule, base, t - schedule.warmup, duration - schedule.warmup);
}

}  // namespace hfta::fusion
