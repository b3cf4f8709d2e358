#pragma once
/// The actions of a plan for a group of ops, and the part of the work that each device then has.

#include <string>
#include <vector>

#include "engine/planner/cluster.hpp"
#include "engine/planner/graph.hpp"

namespace hfta::engine::planner {

/// An action of HeteroG (CoNEXT'20, section 4.1.2), by its number: 0..M-1 one device, without replicas; then the
/// others, in this order.
enum class Sharing {
  kOne,   ///< All on one device.
  kEvPs,  ///< Data parallel, a replica on every device, gradients by a parameter server.
  kEvAr,  ///< Data parallel, a replica on every device, gradients by all-reduce.
  kCpPs,  ///< Data parallel, replicas in proportion to Device::power; parameter server.
  kCpAr,  ///< Data parallel, replicas in proportion to Device::power; all-reduce.
  kSlot   ///< Ours: each device has some of the slots, whole. No gradient travels.
};

struct Action {
  Sharing sharing = Sharing::kOne;
  int device = 0;  ///< The device of kOne.
};

/// The actions for a graph on a cluster: M + 4 and, if there are several slots, kSlot.
[[nodiscard]] std::vector<Action> actions_of(const Graph& graph, const Cluster& cluster);
/// "EV-PS", "SLOT", or the device's name.
[[nodiscard]] std::string to_text(const Action& action, const Cluster& cluster);

/// The part of an op that a device has: some slots, and some samples of the batch.
struct Part {
  int first_slot = 0, slots = 0;
  int first_sample = 0, samples = 0;
  [[nodiscard]] bool empty() const { return slots == 0 || samples == 0; }
};
/// The part of each device. Parts are disjoint, and together all slots x samples.
using Layout = std::vector<Part>;

/// The layout of an action. Shares that do not come out even are rounded so that sums stay; a device may get nothing.
/// kSlot: each slot goes where it would be done first, by the devices' times of the whole graph.
[[nodiscard]] Layout layout_of(const Action& action, const Graph& graph, const Cluster& cluster);

/// Slots x samples that are in both.
[[nodiscard]] double overlap(const Part& a, const Part& b);

/// Seconds of one pass of an op over `slot_samples` slots x samples with the weights of `slots`: a roofline, with
/// Cluster::launch as the least. `passes` is how often the forward's arithmetic is done: 1, or for a backward pass one
/// for each of the gradients of input and weights.
[[nodiscard]] double pass_seconds(const Graph& graph, int op, const Cluster& cluster, int device, double slot_samples,
                                  double slots, int passes);

/// The passes of an op's backward: a gradient of its input unless it reads data, and one of its weights if it has any.
[[nodiscard]] inline int passes_back(const Op& op) { return (op.inputs.empty() ? 0 : 1) + (op.weights > 0 ? 1 : 0); }

}  // namespace hfta::engine::planner
