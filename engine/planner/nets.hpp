#pragma once
/// The nets of HeteroG's evaluation, op by op as their papers describe them, and what that paper measured.

#include <string>
#include <vector>

#include "engine/planner/graph.hpp"

namespace hfta::engine::planner {

struct Net {
  std::string name;
  std::string source;          ///< The paper that describes it.
  double million_weights = 0;  ///< Number of weights as published.
  int samples = 1;             ///< Batch size in HeteroG's table 1.
  Graph (*make)() = nullptr;   ///< Makes the graph of one slot, with a batch of one sample.
};

/// All of them: vgg19, resnet200, inception-v3, mobilenet-v2, nasnet, transformer-6, transformer-24, bert-large-24, ...
[[nodiscard]] const std::vector<Net>& nets();
/// The net of a name, "vgg19" or, with another batch, "vgg19:384". Throws Error{kConfig} naming the nets there are.
[[nodiscard]] Graph net_named(const std::string& word);

/// A row of HeteroG's table 1 (CoNEXT'20): seconds of a step on eight GPUs, see paper_cluster(); 0: out of memory.
struct PaperRow {
  std::string net;  ///< Word that net_named() takes.
  double heterog = 0, ev_ps = 0, ev_ar = 0, cp_ps = 0, cp_ar = 0;
};
[[nodiscard]] const std::vector<PaperRow>& paper_rows();

}  // namespace hfta::engine::planner
