// Data in tables of text.

#include <filesystem>
#include <utility>

#include "fusion/data/readers.hpp"
#include "fusion/data/table_file.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

void make_integers(Field& field) {
  const auto& numbers = std::get<std::vector<double>>(field.data);
  field.data = std::vector<std::int64_t>(numbers.begin(), numbers.end());
}

Dataset read_columns(const fs::path& path, const DataSource& source, const Uses& uses, const std::string& place) {
  if (source.target.empty()) fail_at(place, "target: found nothing, wanted the name of the target's column");
  NumberTable table = read_table(path, {source.target, source.features, uses.target, uses.input(0)}, place);
  Dataset data;
  data.size = static_cast<std::int64_t>(table.targets.size());
  data.inputs.push_back({"x", {static_cast<std::int64_t>(table.columns.size())}, std::move(table.features)});
  data.target = {source.target, {}, std::move(table.targets)};
  if (uses.target == Use::kLabels) make_integers(data.target);
  if (uses.input(0) == Use::kIntegers) make_integers(data.inputs[0]);
  return data;
}

}  // namespace

const DataReader kTable = {".csv, .tsv (also with .gz)", DataKeys::kColumns, is_table, read_columns};

}  // namespace hfta::fusion
