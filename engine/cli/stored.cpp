// Studies in a store, as commands name them.

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/report/report.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine {

namespace po = boost::program_options;
using storage::Store;

void add_storage_option(po::options_description& options) {
  options.add_options()("storage", po::value<std::string>()->value_name("URL"),
                        "the store: a file's path, or sqlite:///path");
}

std::unique_ptr<Store> open_store(const Arguments& arguments) {
  return storage::open_store(arguments.required("storage"), storage::OpenMode::kReadOnly);
}

std::string study_or_only(const Arguments& arguments, Store& store) {
  if (auto name = arguments.get<std::string>("STUDY")) return *name;
  const std::vector<storage::StudySummary> studies = store.studies();
  if (studies.size() == 1) return studies.front().name;
  std::vector<std::string> names;
  names.reserve(studies.size());
  for (const storage::StudySummary& study : studies) names.push_back(printable(study.name));
  if (names.empty()) throw Error(ErrorKind::kConfig, "found no study in the store, wanted at least one");
  throw Error(ErrorKind::kConfig, fmt::format("STUDY: found none given, wanted one of the {} studies in the store: {}",
                                              names.size(), join(names)));
}

Faults faults_from_environment() {
  const char* orders = std::getenv("HFTA_FAULTS");
  return Faults(orders != nullptr ? orders : "");
}

StudyConfig load_begun(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  StudyConfig config = load_config(file, overrides);
  if (!config.choice) return config;
  const std::unique_ptr<Store> store = storage::open_store_if_made(config.storage, storage::OpenMode::kReadOnly);
  const std::optional<storage::StudyRecord> stored = store ? store->find(config.study) : std::nullopt;
  return stored ? load_config(file, overrides, choice_of(*stored)) : config;
}

StoredConfig stored_config(Store& store, const std::string& study, const std::string& url,
                           const std::vector<Override>& overrides) {
  const std::optional<storage::StudyRecord> stored = store.find(study);
  if (!stored) (void)read_report(store, study);  // throws an error that names the studies there are
  ConfigOrigin origin = origin_of(*stored);
  for (const Override& o : overrides) origin.overrides.push_back(o);
  StudyConfig config = parse_config(stored->config, origin.file, origin.overrides, choice_of(*stored));
  config.study = study;
  config.storage = storage::absolute_store(url);  // the store may have been moved since
  return {std::move(config), std::move(origin)};
}

}  // namespace hfta::engine
