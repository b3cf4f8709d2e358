#pragma once
/// The memory that a trainer's arrays may hold: which ways to run fit, and how wide arrays are then.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/fused/budget.hpp"
#include "engine/fused/lent_ways.hpp"
#include "engine/fused/prepared_task.hpp"
#include "engine/fused/study_data.hpp"
#include "engine/fused/task_facts.hpp"
#include "engine/fused/trainer_setup.hpp"
#include "engine/trainer.hpp"
#include "fusion/lowering.hpp"
#include "fusion/ways.hpp"

namespace hfta::engine {

/// Used by one thread at a time. Its functions throw Error{kConfig} where no way to run a task is known, and as
/// StudyData and TaskFacts do.
class ArrayMemory {
 public:
  /// All of these must outlive this.
  ArrayMemory(const TrainerSetup& setup, StudyData& data, TaskFacts& facts)
      : setup_(setup), data_(data), facts_(facts) {}

  /// The most slots that an array should have, if they fit; planned_width(): those that it will have.
  [[nodiscard]] int wanted_width() const;
  [[nodiscard]] int planned_width(const PreparedTask& task);
  /// The question for ways to run arrays of that width. It refers to the task, and to what TaskFacts has of it.
  [[nodiscard]] fusion::WayQuestion question(const PreparedTask& task, int width);
  /// The task's ways that fit.
  [[nodiscard]] Budgeted budgeted(const PreparedTask& task);
  /// PartitionPlan::budget, of budgeted().
  [[nodiscard]] MemoryPlan plan(const PreparedTask& task, const Budgeted& found);
  /// The memory that arrays of the task need with that lowering.
  [[nodiscard]] MemoryNeed need(const PreparedTask& task, const fusion::Lowering& lowering);
  /// The LentWays of an array of the task that runs by `own`; null: it trains with its own threads only.
  [[nodiscard]] std::unique_ptr<LentWays> lent_ways(const PreparedTask& task, const fusion::Lowering& own);
  /// Throws Error{kConfig} unless one slot fits into memory.limit, and array.width slots do. `found`: budgeted().
  void check(const PreparedTask& task, const Budgeted& found);

 private:
  /// Bytes that arrays may hold.
  [[nodiscard]] std::int64_t usable_bytes() const;
  /// Number of slots that keep all threads busy that train an array, those of the other stages, too.
  [[nodiscard]] int busy_slots() const { return setup_.threads() * setup_.stages(); }
  /// WayQuestion::evaluation_batch.
  [[nodiscard]] std::int64_t evaluated_at_a_time(const PreparedTask& task);
  /// Bytes of the device that the task's data take.
  [[nodiscard]] std::int64_t data_bytes(const PreparedTask& task);
  /// All ways to run arrays of that width under the policy, and what they need. Throws Error{kConfig} if there are
  /// none.
  [[nodiscard]] const std::vector<WayNeed>& ways(const PreparedTask& task, int width);
  [[nodiscard]] std::vector<WayNeed> needs_of(const PreparedTask& task, const fusion::WayQuestion& question,
                                              std::span<const fusion::Lowering> ways);
  /// The largest batch, of the task's halved again and again, with which one slot fits; 0: none.
  [[nodiscard]] int batch_that_fits(const PreparedTask& task);

  const TrainerSetup& setup_;
  StudyData& data_;
  TaskFacts& facts_;
  std::map<std::string, std::vector<WayNeed>> ways_;  ///< By graph, width and data.
};

}  // namespace hfta::engine
