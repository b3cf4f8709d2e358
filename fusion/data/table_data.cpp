// Data in tables of text.

#include <filesystem>
#include <utility>
#include <vector>

#include "fusion/data/file_bytes.hpp"
#include "fusion/data/readers.hpp"
#include "fusion/data/table_file.hpp"

namespace hfta::fusion {
namespace {

namespace fs = std::filesystem;

Numbers numbers_for(const std::vector<double>& numbers, Use use) {
  if (use == Use::kNumbers) return numbers;
  return std::vector<std::int64_t>(numbers.begin(), numbers.end());
}

FileData read_columns(const fs::path& path, const DataSource& source, const Uses& uses, const DataFiles& /*files*/,
                      const std::string& place) {
  const bool labelled = uses.target != Use::kNothing;
  if (labelled && source.target.empty())
    fail_at(place, "target: found nothing, wanted the name of the target's column");
  const NumberTable table = read_table(
      path, {source.target, source.features, uses.target, uses.input(0), uses.ignored, source.folds.groups}, place);
  Dataset data;
  data.size = table.rows;
  const auto width = static_cast<std::int64_t>(table.columns.size());
  data.inputs.push_back({"x", {width}, numbers_for(table.features, uses.input(0))});
  data.labelled = labelled;
  if (labelled) data.target = {source.target, {}, numbers_for(table.targets, uses.target)};
  return {std::move(data), table.columns};
}

}  // namespace

const DataReader kTable = {".csv, .tsv (also with .gz)", DataKeys::kColumns, is_table, read_columns};

}  // namespace hfta::fusion
