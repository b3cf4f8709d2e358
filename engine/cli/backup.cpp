// hfta-tune backup

#include "storage/sqlite/backup.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/output.hpp"
#include "engine/report/words.hpp"
#include "storage/stores/stores.hpp"

namespace hfta::engine {
namespace {

Usage backup_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune backup DESTINATION --storage URL";
  usage.about =
      "A copy of a store, and of the training states that belong to it in DESTINATION.hfta, "
      "while the store is used. A\n"
      "study goes on from it where it lies, or when both are moved over the store. DESTINATION must be a new name.\n";
  add_storage_option(usage.options);
  usage.positional = {"DESTINATION"};
  return usage;
}

}  // namespace

int backup_command(const Words& words) {
  const Usage usage = backup_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const std::filesystem::path destination = storage::store_file(arguments.required("DESTINATION"));
  const std::filesystem::path store = storage::store_file(arguments.required("storage"));
  const storage::Backup backup = storage::back_up(store, destination, faults_from_environment());
  const std::string name = printable(destination.string());
  print(fmt::format("{}: {}, {}, {} and {}{}; {} bytes\n", name,
                    counted(static_cast<std::size_t>(backup.studies), "study", "studies"),
                    counted(static_cast<std::size_t>(backup.trials), "trial", "trials"),
                    counted(static_cast<std::size_t>(backup.rounds), "round", "rounds"),
                    counted(static_cast<std::size_t>(backup.states), "state", "states"),
                    backup.states > 0 ? " in " + name + ".hfta" : "", backup.bytes));
  for (const std::string& line : backup.damage) tell(line);
  return backup.damage.empty() ? 0 : kDamagedStore;
}

}  // namespace hfta::engine
