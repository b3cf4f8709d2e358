// docs/op-table.md is printed from the rules; this test holds it to them.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "catch_after_torch.hpp"
#include "fusion/array/rule.hpp"

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
         "(tests/fusion/array/ops_test.cpp).\n"
         "Ops that are not here run through LibTorch's batching (functorch), or slot by slot where that has no way.\n\n"
         "Printed from the rules: `HFTA_WRITE_DOCS=1 build/release/tests/fusion/array/array_test 'the op table*'`.\n\n"
         "| op | family | ways | parity |\n|---|---|---|---|\n";
  for (const Rule& rule : all_rules()) {
    out << "| `" << rule.op << "` | " << rule.family << " | ";
    if (rule.candidates.empty()) out << (rule.dims.empty() ? "as it is" : "as it is, dimensions moved by one");
    for (std::size_t i = 0; i < rule.candidates.size(); ++i) out << (i > 0 ? ", " : "") << rule.candidates[i].name;
    out << " | 1e-12 |\n";
  }
  return out.str();
}

}  // namespace

TEST_CASE("the op table in docs is that of the rules") {
  const std::string path = HFTA_SOURCE_DIR "/docs/op-table.md";
  if (std::getenv("HFTA_WRITE_DOCS") != nullptr) std::ofstream(path) << op_table();
  std::ifstream file(path);
  std::ostringstream found;
  found << file.rdbuf();
  CHECK(found.str() == op_table());
}

}  // namespace hfta::fusion
