// hfta-tune report, hfta-tune studies

#include "engine/report/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/driver/study/runner.hpp"
#include "engine/report/front.hpp"
#include "engine/report/timeline.hpp"
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
      "format", po::value<std::string>()->value_name("table|json|csv|events"), "table unless told")(
      "output", po::value<std::string>()->value_name("FILE"), "write to a file, not to standard output")(
      "reference", po::value<std::string>()->value_name("A,B"),
      "of several objectives: the values that the hypervolume is measured from; the worst ones of all COMPLETE trials "
      "unless told")("timeline", po::value<std::string>()->value_name("FILE"),
                     "also write where each device's time went: .svg, a picture; .json, a Chrome trace");
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

struct Format {
  const char* name;
  bool shortened;  // by `top`
  std::string (*text)(const ReportInput& input, std::optional<int> top);
};

constexpr Format kFormats[] = {
    {"table", true,
     [](const ReportInput& input, std::optional<int> top) { return report_table(input, top.value_or(kTopTrials)); }},
    {"json", true, report_json},
    {"csv", true, report_csv},
    {"events", false, [](const ReportInput& input, std::optional<int>) { return report_events(input); }}};

const Format& format_named(const std::string& name) {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  (void)one_of("--format", name, names);
  return *std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return name == f.name; });
}

// Checks the options of a timeline before the store is opened.
void check_timeline(const Arguments& arguments) {
  const auto file = arguments.get<std::string>("timeline");
  if (!file || file->ends_with(".svg") || file->ends_with(".json")) return;
  throw Error(ErrorKind::kConfig, fmt::format("--timeline: found '{}', wanted a file .svg or .json", excerpt(*file)));
}

void write_timeline(const std::string& file, storage::Store& store, const ReportInput& input) {
  const std::optional<storage::StudyRecord> study = store.find(input.study);
  const double seconds = study ? study->progress.seconds : 0;
  const std::optional<Timeline> timeline = timeline_of(input.arrays, input.rounds, seconds);
  if (!timeline) {
    throw Error(ErrorKind::kConfig, fmt::format("--timeline: study '{}' has no round yet", printable(input.study)));
  }
  print_to(file, file.ends_with(".svg") ? timeline_svg(*timeline, input.study) : timeline_trace(*timeline));
}

}  // namespace

int report_command(const Words& words) {
  const Usage usage = report_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const Format& format = format_named(arguments.get<std::string>("format").value_or("table"));
  const std::optional<int> top = arguments.get<int>("top");
  if (top && *top < 1) throw Error(ErrorKind::kConfig, fmt::format("--top: found {}, wanted at least 1", *top));
  if (top && !format.shortened)
    throw Error(ErrorKind::kConfig, "--top: found it beside --format events, wanted one of them");
  check_timeline(arguments);
  const std::unique_ptr<storage::Store> store = open_store(arguments);
  ReportInput input = read_report(*store, study_or_only(arguments, *store));
  if (const auto reference = arguments.get<std::string>("reference")) {
    input.reference = reference_from(*reference, input.objectives);
  }
  input.runner = runner_of(*store, input.study, SystemClock());
  if (const auto file = arguments.get<std::string>("timeline")) write_timeline(*file, *store, input);
  print_to(arguments.get<std::string>("output").value_or(""), format.text(input, top));
  if (input.damage.empty()) return 0;
  const std::string file = printable(storage::store_file(arguments.required("storage")).string());
  for (const std::string& line : input.damage) tell(line.starts_with(file) ? line : fmt::format("{}: {}", file, line));
  return kDamagedStore;
}

int studies_command(const Words& words) {
  const Usage usage = studies_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::string format =
      one_of("--format", arguments.get<std::string>("format").value_or("table"), {"table", "json"});
  const std::vector<storage::StudySummary> studies = read_studies(*open_store(arguments));
  print(format == "json" ? studies_json(studies) : studies_table(studies));
  return 0;
}

}  // namespace hfta::engine
