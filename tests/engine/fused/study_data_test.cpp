// The data of a study while it runs.
#include <chrono>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "base/temporary_folder.hpp"
#include "one_trainer.hpp"
#include "tests/fusion/array/catch_after_torch.hpp"

namespace hfta::engine {
namespace {

constexpr const char* kStudy = R"(study: two
method: random
run_cap: 4
metric: {name: val_loss, goal: minimize}
parameters: {hidden: {values: [4, 8]}}
model: {layers: [{linear: [2, "${hidden}"]}, relu, {linear: ["${hidden}", 1]}]}
data: {train: d.csv, target: y, batch_size: 4, validation: 0.25}
train: {epochs: 2, loss: mse, optimizer: {name: sgd, lr: 0.01}}
)";

trials::Params hidden(std::int64_t size) { return {{"hidden", size}}; }

// `factor`: of the targets. Written files differ in their times of change.
void write_table(const std::filesystem::path& file, double factor, int hours) {
  std::ofstream out(file);
  out << "a,b,y\n";
  for (int i = 0; i < 16; ++i) out << i << ',' << 2 * i << ',' << factor * i << '\n';
  out.close();
  std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - std::chrono::hours(hours));
}

}  // namespace

TEST_CASE("a file that is written while a study runs must have the same numbers") {
  const TemporaryFolder folder("study_data_test");
  const std::filesystem::path file = folder.path() / "d.csv";
  write_table(file, 1, 3);
  TrainerOptions options = testing::options_of(kStudy, {});
  options.config = parse_config(kStudy, folder.path() / "s.yaml", {});
  testing::OneTrainer one(options);
  (void)one.trainer.plan(hidden(4));
  write_table(file, 1, 2);  // as `touch` does
  CHECK_NOTHROW(one.trainer.plan(hidden(8)));
  write_table(file, 100, 1);
  try {
    (void)one.trainer.plan(hidden(8));
    FAIL("other numbers were taken");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kConfig);
    CHECK_THAT(error.what(), Catch::Contains("found other numbers in d.csv"));
  }
  write_table(file, 1, 0);
  CHECK_NOTHROW(one.trainer.plan(hidden(8)));
}

}  // namespace hfta::engine
