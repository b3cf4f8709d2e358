#pragma once
/// The parts that a fused trainer and its arrays share.

#include "engine/fused/array_memory.hpp"
#include "engine/fused/frozen_layers.hpp"
#include "engine/fused/model_files.hpp"
#include "engine/fused/prepared_task.hpp"
#include "engine/fused/study_data.hpp"
#include "engine/fused/task_facts.hpp"
#include "engine/fused/trainer_setup.hpp"

namespace hfta::engine {

/// Each part refers to earlier ones only. Used by one thread at a time, but for `setup`, which any thread may read.
struct TrainerParts {
  explicit TrainerParts(const TrainerOptions& options);
  TrainerParts(const TrainerParts&) = delete;
  TrainerParts& operator=(const TrainerParts&) = delete;

  /// The task of a trial; throws Error{kConfig} if model and data do not fit each other.
  [[nodiscard]] PreparedTask prepare(const trials::Params& params);

  const TrainerSetup setup;
  ModelFiles models;
  FrozenLayers frozen;
  StudyData data;
  TaskFacts facts;
  ArrayMemory memory;
};

}  // namespace hfta::engine
