#include "fusion/pt2/version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace hfta::fusion::pt2 {
namespace {

constexpr std::string_view kOldest = "2.9";  // the first torch that keeps weights raw
constexpr std::int64_t kSchema = 8;
constexpr std::string_view kUsual = "model";
constexpr const char* kBeforePackages = "serialized_exported_program.json";  // torch 2.7 and older

std::string small_text(const Archive& archive, const std::string& member) {
  const std::vector<std::byte> bytes = archive.read(member);
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find('\n'));
}

std::string torch_version(const Reader& program) {
  return program.has("torch_version") ? program["torch_version"].text() : "an unknown version";
}

[[noreturn]] void too_old(const Archive& archive, const std::string& member) {
  const Json json = parse_json(archive.read(member), archive.name());
  fail(archive.name(), fmt::format("found an archive of torch {}, which pickles its weights, wanted one of torch {} or "
                                   "newer: export the model again there",
                                   torch_version({json, archive.name()}), kOldest));
}

void check_archive_kind(const Archive& archive) {
  if (archive.has("byteorder") && small_text(archive, "byteorder") != "little") {
    fail(archive.name(), "found weights in big-endian order, wanted little-endian: export the model on such a machine");
  }
  if (!archive.has("archive_version")) return;
  const std::string version = small_text(archive, "archive_version");
  if (version != "0") fail(archive.name(), fmt::format("found archive version {}, wanted 0", version));
}

}  // namespace

std::string model_name(const Archive& archive) {
  if (archive.has(kBeforePackages)) too_old(archive, kBeforePackages);
  check_archive_kind(archive);
  constexpr std::string_view kFolder = "models/";
  constexpr std::string_view kSuffix = ".json";
  std::vector<std::string> models;
  bool compiled = false;
  for (const std::string& member : archive.members()) {
    compiled = compiled || member.starts_with("data/aotinductor/");
    if (!member.starts_with(kFolder) || !member.ends_with(kSuffix)) continue;
    const std::size_t length = member.size() - std::min(member.size(), kFolder.size() + kSuffix.size());
    models.push_back(member.substr(kFolder.size(), length));
  }
  if (models.empty()) {
    fail(archive.name(), compiled ? "found a package of compiled code (AOTInductor), wanted the exported model itself: "
                                    "what torch.export.save writes"
                                  : "found no exported model, wanted what torch.export.save writes");
  }
  const bool usual = std::find(models.begin(), models.end(), kUsual) != models.end();
  if (!usual && models.size() > 1) {
    fail(archive.name(), fmt::format("found several models: {}; wanted one: save it alone", join(models)));
  }
  std::string name = usual ? std::string(kUsual) : models[0];
  if (archive.has("data/weights/" + name + ".pt")) too_old(archive, fmt::format("models/{}.json", name));
  return name;
}

std::string check_schema(const Reader& program) {
  const std::int64_t major = program["schema_version"]["major"].integer();
  const std::string version = torch_version(program);
  if (major != kSchema) {
    program.fail(fmt::format("found an archive of torch {} with schema {}.{}, wanted schema {} (torch {} and later)",
                             version, major, program["schema_version"]["minor"].integer(), kSchema, kOldest));
  }
  return version;
}

}  // namespace hfta::fusion::pt2
