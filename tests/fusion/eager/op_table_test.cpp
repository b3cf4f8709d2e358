// docs/op-table.md is printed from the rules; this test holds it to them.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "fusion/cpu/ops.hpp"
#include "fusion/eager/batching_rule.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion {
namespace {

std::string op_table() {
  std::ostringstream out;
  out << "# Op table\n\n"
         "How each ATen op runs for the c slots of a chunk, on values [c, N, ...]. Where several ways are named, "
         "`hfta-tune`\n"
         "measures and chooses; the first is taken where nothing was measured. A chunk of one slot runs the op "
         "itself.\n"
         "Every way is compared with the op on each slot alone, in float64, to the tolerance named: outputs and every "
         "gradient\n"
         "relative to the tensor's norm; and no slot changes a bit when its neighbours turn NaN "
         "(tests/fusion/eager/ops_test.cpp).\n"
         "Ops that are not here run through LibTorch's batching (functorch), or slot by slot where that has no way.\n\n"
         "On a CPU, a model all of whose ops are marked *compiled* can also run as a step compiled for its graph: "
         "kernels "
         "of our\n"
         "own and LIBXSMM's over one arena, slot by slot (fusion/cpu). That is one more way that is measured.\n\n"
         "Printed from the rules: `HFTA_WRITE_DOCS=1 build/release/tests/fusion/array/array_test 'the op table*'`.\n\n"
         "| op | family | ways | compiled | parity |\n|---|---|---|---|---|\n";
  for (const BatchingRule& rule : batching_rules()) {
    out << "| `" << rule.op << "` | " << rule.family << " | ";
    if (rule.candidates.empty()) out << (rule.dims.empty() ? "as it is" : "as it is, dimensions moved by one");
    for (std::size_t i = 0; i < rule.candidates.size(); ++i) out << (i > 0 ? ", " : "") << rule.candidates[i].name;
    out << " | " << (cpu::find_compiler(rule.op) != nullptr ? "compiled" : "") << " | 1e-12 |\n";
  }
  out << "\nCompiled, too: ";
  const char* separator = "";
  for (const std::string& op : cpu::compiled_ops()) {
    if (find_batching_rule(op) != nullptr) continue;
    out << separator << '`' << op << '`';
    separator = ", ";
  }
  out << ".\n";
  return out.str();
}

}  // namespace

TEST_CASE("the op table in docs is that of the rules") {
  const std::string path = hfta::testing::source_folder() / "docs/op-table.md";
  if (std::getenv("HFTA_WRITE_DOCS") != nullptr) std::ofstream(path) << op_table();
  std::ifstream file(path);
  std::ostringstream found;
  found << file.rdbuf();
  CHECK(found.str() == op_table());
}

}  // namespace hfta::fusion
