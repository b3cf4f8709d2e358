#include "fusion/lowering.hpp"

#include <fmt/format.h>

namespace hfta::fusion {

std::string Lowering::to_text() const {
  if (compiled) return fmt::format("compiled, {} x {} threads", workers, threads_per_worker);
  std::string text = fmt::format("chunk {}", chunk);
  if (chunk == 1 && channels_last) text += ", channels last";
  if (chunk > 1) {
    for (const auto& [family, name] : families) text += fmt::format(", {} {}", family, name);
  }
  return text + fmt::format(", {} x {} threads", workers, threads_per_worker);
}

}  // namespace hfta::fusion
