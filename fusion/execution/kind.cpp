#include "fusion/execution/kind.hpp"

#include <algorithm>

namespace hfta::fusion {
namespace {

constexpr int kMostOnGpu = 4;

}  // namespace

Lowering in_groups_of(int chunk, const CandidateQuestion& question) {
  const bool gpu = !question.device.is_cpu();
  Lowering lowering;
  lowering.chunk = chunk;
  const int chunks = (question.width + chunk - 1) / chunk;
  // On a GPU chunks run on streams, each with a thread to keep it filled.
  lowering.workers = std::max(1, std::min({question.threads, chunks, gpu ? kMostOnGpu : chunks}));
  lowering.threads_per_worker = gpu ? 1 : std::max(1, question.threads / lowering.workers);
  return lowering;
}

}  // namespace hfta::fusion
