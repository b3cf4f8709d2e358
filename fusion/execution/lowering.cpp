#include "fusion/lowering.hpp"

#include <fmt/format.h>

#include <vector>

#include "base/text.hpp"

namespace hfta::fusion {

std::string Lowering::to_text() const {
  std::vector<std::string> parts;
  const bool usual = executor == Lowering().executor;
  if (!usual) parts.push_back(executor);
  if (usual || chunk > 1) parts.push_back(fmt::format("chunk {}", chunk));
  if (chunk == 1 && channels_last) parts.emplace_back("channels last");
  if (chunk > 1) {
    for (const auto& [family, name] : families) parts.push_back(fmt::format("{} {}", family, name));
  }
  if (recompute > 0) parts.push_back(fmt::format("recompute {}", recompute));
  parts.push_back(fmt::format("{} x {} threads", workers, threads_per_worker));
  return join(parts);
}

}  // namespace hfta::fusion
