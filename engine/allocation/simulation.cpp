#include "engine/allocation/simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "base/percentile.hpp"

namespace hfta::engine {
namespace {

void check_choice(DeviceSet set, DeviceSet free, int devices) {
  if (contains(free, set) && size_of(set) == devices) return;
  throw Error(ErrorKind::kInternal,
              fmt::format("allocation: a policy chose {}, wanted {} of {}", to_text(set), devices, to_text(free)));
}

/// The arrays at work as a policy sees them: with the time that is left to each.
std::vector<Busy> left_at(double now, const std::vector<Busy>& ends) {
  std::vector<Busy> left;
  left.reserve(ends.size());
  for (const Busy& busy : ends) left.push_back({busy.set, busy.seconds - now});
  return left;
}

}  // namespace

std::vector<Placed> run_queue(const std::vector<Job>& jobs, const TimeModel& model, Policy& policy) {
  std::vector<Request> queue;
  queue.reserve(jobs.size());
  for (const Job& job : jobs) queue.push_back(job.request);
  std::vector<Busy> ends;  // sets at work, and when they end
  std::vector<Placed> placed;
  DeviceSet free = model.scores().topology().all();
  double now = 0;
  const auto sooner = [](const Busy& a, const Busy& b) {
    return a.seconds != b.seconds ? a.seconds < b.seconds : a.set < b.set;
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    now = std::max(now, jobs[i].arrival);
    for (auto next = std::min_element(ends.begin(), ends.end(), sooner);
         next != ends.end() && (next->seconds <= now || size_of(free) < queue[i].devices);
         next = std::min_element(ends.begin(), ends.end(), sooner)) {
      now = std::max(now, next->seconds);
      free |= next->set;
      ends.erase(next);
    }
    const std::vector<Busy> busy = left_at(now, ends);
    const DeviceSet set = policy.choose({free, busy, std::span(queue).subspan(i)});
    check_choice(set, free, queue[i].devices);
    const double slowdown = model.slowdown(queue[i], set);
    placed.push_back({set, now, now + queue[i].seconds * slowdown, slowdown});
    free ^= set;
    ends.push_back({set, placed.back().ended});
  }
  return placed;
}

double percentile(std::vector<double> values, double part) {
  if (values.empty()) return 1;
  std::sort(values.begin(), values.end());
  return percentile_of(values, 100 * part);
}

Summary summary(const std::vector<std::vector<Job>>& queues, const std::vector<std::vector<Placed>>& placed) {
  std::vector<double> slowdowns;
  Summary all;
  for (std::size_t q = 0; q < queues.size(); ++q) {
    double end = 0;
    for (std::size_t i = 0; i < queues[q].size(); ++i) {
      end = std::max(end, placed[q][i].ended);
      const Request& request = queues[q][i].request;
      if (request.devices > 1 && request.sensitive) slowdowns.push_back(placed[q][i].slowdown);
    }
    if (end > 0) all.throughput += static_cast<double>(queues[q].size()) / end / static_cast<double>(queues.size());
  }
  if (slowdowns.empty()) return all;
  all.mean = std::accumulate(slowdowns.begin(), slowdowns.end(), 0.0) / static_cast<double>(slowdowns.size());
  all.third_quartile = percentile(slowdowns, 0.75);
  all.ninetieth = percentile(slowdowns, 0.9);
  all.ninety_fifth = percentile(slowdowns, 0.95);
  all.most = percentile(slowdowns, 1);
  return all;
}

}  // namespace hfta::engine
