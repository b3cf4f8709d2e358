// hfta-tune report, hfta-tune studies

#include "engine/report/report.hpp"

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/driver/runner.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine {
namespace {

namespace po = boost::program_options;

constexpr int kTopTrials = 10;

Usage report_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune report [STUDY] --storage URL [options]";
  usage.about = "What a study has found. STUDY may be left out where the store has exactly one.\n";
  add_storage_option(usage.options);
  usage.options.add_options()("top", po::value<int>()->value_name("K"),
                              "only the K best trials (table: 10 unless told)")(
      "format", po::value<std::string>()->value_name("table|json|csv"), "table unless told")(
      "output", po::value<std::string>()->value_name("FILE"), "write to a file, not to standard output");
  usage.positional = {"STUDY"};
  return usage;
}

Usage studies_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune studies --storage URL [--format table|json]";
  usage.about = "The studies in a store.\n";
  add_storage_option(usage.options);
  usage.options.add_options()("format", po::value<std::string>()->value_name("table|json"), "table unless told");
  return usage;
}

std::string formatted(const ReportInput& input, const std::string& format, std::optional<int> top) {
  if (format == "json") return report_json(input, top);
  if (format == "csv") return report_csv(input, top);
  return report_table(input, top.value_or(kTopTrials));
}

}  // namespace

int report_command(const Words& words) {
  const Usage usage = report_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::string format = arguments.get<std::string>("format").value_or("table");
  if (format == "html")
    throw Error(ErrorKind::kConfig, "--format: html is not available in this version, wanted table, json or csv");
  (void)one_of("--format", format, {"table", "json", "csv"});
  const std::optional<int> top = arguments.get<int>("top");
  if (top && *top < 1) throw Error(ErrorKind::kConfig, fmt::format("--top: found {}, wanted at least 1", *top));
  const std::unique_ptr<storage::Store> store = open_store(arguments);
  ReportInput input = read_report(*store, study_or_only(arguments, *store));
  input.runner = runner_of(*store, input.study, SystemClock());
  print_to(arguments.get<std::string>("output").value_or(""), formatted(input, format, top));
  if (input.damage.empty()) return 0;
  const std::string file = printable(storage::store_file(arguments.required("storage")).string());
  for (const std::string& line : input.damage) tell(line.starts_with(file) ? line : file + ": " + line);
  return kDamagedStore;
}

int studies_command(const Words& words) {
  const Usage usage = studies_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::string format =
      one_of("--format", arguments.get<std::string>("format").value_or("table"), {"table", "json"});
  const std::vector<storage::StudySummary> studies = open_store(arguments)->studies();
  print(format == "json" ? studies_json(studies) : studies_table(studies));
  return 0;
}

}  // namespace hfta::engine
