#include <fcntl.h>
#include <fmt/format.h>

#include "base/folder.hpp"
#include "base/text.hpp"
#include "engine/doctor/checks.hpp"
#include "engine/report/words.hpp"
#include "storage/sqlite/holder_file.hpp"

namespace hfta::engine::doctor {
namespace {

// Whether a process holds the file. A process that waits for the study has such a file too, and holds it.
bool is_held(const Folder& folder, const std::string& name) {
  const std::optional<Descriptor> file = folder.file(name, O_RDONLY);
  return file && !storage::is_let_go(file->get());
}

}  // namespace

void check_runner(const ExaminedStore& /*store*/, const ExaminedStudy& study, Findings& findings) {
  const std::string where = place(study.name);
  if (study.is_being_run()) {
    findings.push_back({Severity::kOk,
                        where,
                        fmt::format("{} runs it, last heartbeat {} ago", printable(study.runner->holder),
                                    duration_text(study.runner->silence.value_or(0))),
                        "",
                        {}});
    return;  // the runner removes files that are left
  }
  try {
    const std::optional<Folder> folder = Folder::find(study.store.parent_path(), study.folder);
    if (!folder) return;
    for (const std::string& name : folder->files()) {
      if (!name.starts_with(storage::kHolderPrefix) || is_held(*folder, name)) continue;
      findings.push_back({Severity::kNote, shown(study.store, study.folder / name),
                          fmt::format("a process that ran the study was killed; the last to run it was {}",
                                      study.runner ? printable(study.runner->holder) : "nobody"),
                          std::string("the next run removes it, and so does ") + kRepair,
                          removal(study.store, study.folder, name)});
    }
  } catch (const Error& error) {
    findings.push_back(unreadable(shown(study.store, study.folder), error));
  }
}

}  // namespace hfta::engine::doctor
