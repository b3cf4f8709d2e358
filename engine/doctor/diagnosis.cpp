#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "engine/doctor/checks.hpp"
#include "engine/report/words.hpp"

namespace hfta::engine {

const char* name_of(Severity severity) {
  switch (severity) {
    case Severity::kOk:
      return "ok";
    case Severity::kNote:
      return "note";
    case Severity::kDamage:
      break;
  }
  return "damage";
}

int Diagnosis::count(Severity severity) const {
  return static_cast<int>(std::count_if(findings.begin(), findings.end(),
                                        [&](const Finding& finding) { return finding.severity == severity; }));
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  std::string text;
  for (const std::string& line : diagnosis.done) text += fmt::format("{:<8}{}\n", "done", printable(line));
  for (const Finding& finding : diagnosis.findings) {
    // A finding of what could not be read names its file itself.
    const bool named = finding.found.find(finding.where + ":") != std::string::npos;
    text += fmt::format("{:<8}{}{}{}\n", name_of(finding.severity), named ? "" : finding.where + ": ", finding.found,
                        finding.advice.empty() ? "" : "; " + finding.advice);
  }
  const auto notes = static_cast<std::size_t>(diagnosis.count(Severity::kNote));
  const int damage = diagnosis.count(Severity::kDamage);
  return text + fmt::format("{}: {}, {}\n", printable(diagnosis.store.filename().string()),
                            damage == 0 ? "nothing is damaged" : fmt::format("{} damaged", damage),
                            counted(notes, "note", "notes"));
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
  using nlohmann::ordered_json;
  ordered_json findings = ordered_json::array();
  for (const Finding& finding : diagnosis.findings) {
    findings.push_back({{"severity", name_of(finding.severity)},
                        {"where", finding.where},
                        {"found", finding.found},
                        {"advice", finding.advice},
                        {"repairable", finding.repair != nullptr}});
  }
  ordered_json all = {{"store", printable(diagnosis.store.string())},
                      {"findings", std::move(findings)},
                      {"done", diagnosis.done},
                      {"notes", diagnosis.count(Severity::kNote)},
                      {"damage", diagnosis.count(Severity::kDamage)}};
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hfta::engine
