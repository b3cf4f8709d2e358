// A finished trial's weights as a file.

#include "engine/export/export.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <span>

#include "base/error.hpp"
#include "engine/driver/study/study.hpp"
#include "engine/export/matrix.hpp"
#include "fusion/data/safetensors.hpp"
#include "fusion/exported.hpp"
#include "study_fixture.hpp"
#include "tests/source_folder.hpp"

using namespace hfta;
using namespace hfta::engine;
using namespace hfta::engine::testing;
using fusion::TensorView;

namespace {

using Tensors = std::map<std::string, std::vector<float>>;

std::vector<std::byte> state_of(const Tensors& tensors) {
  std::vector<TensorView> views;
  for (const auto& [name, values] : tensors) {
    views.push_back({name, "F32", {static_cast<std::int64_t>(values.size())}, std::as_bytes(std::span(values))});
  }
  return fusion::write_safetensors(views, {{"step", "9"}});
}

std::map<std::string, std::vector<std::byte>> contents(const std::vector<std::byte>& file) {
  std::map<std::string, std::vector<std::byte>> out;
  for (const TensorView& tensor : fusion::parse_safetensors(file).tensors) {
    out[tensor.name] = {tensor.bytes.begin(), tensor.bytes.end()};
  }
  return out;
}

// Four trials of three epochs each, of which 0, 1 and 3 are COMPLETE and 1 is the best; 1 and 3 are kept.
class Finished {
 public:
  explicit Finished(StudyConfig config = digits_config())
      : study(std::move(config)),
        store(study.open()),
        states(study.files, study.checkpoints),
        kept(states.of(storage::StateKind::kFinished)) {
    store->create(new_record(study.config, {"/digits.yaml", {}}));
    trials::Params params;
    for (const trials::Parameter& p : digits_space()) params.emplace_back(p.name, extremes_of(p));
    (void)store->add_trials("digits", std::vector<storage::NewTrial>(4, {params}), {});
    const double values[] = {0.5, 0.9, 0.7, 0.8};
    storage::Changes changes;
    for (int trial = 0; trial < 4; ++trial) {
      for (int epoch = 1; epoch <= 3; ++epoch) {
        const double value = values[trial] - (epoch == 2 ? 0 : 0.01 * epoch);
        changes.epochs.push_back({trial, {epoch, {{"val_accuracy", value}}}, value});
      }
      const bool complete = trial != 2;
      changes.states.push_back(
          {trial, complete ? trials::State::kComplete : trials::State::kPruned, {values[trial] - 0.03}, "", {}});
    }
    store->commit("digits", changes);
    for (const int trial : {1, 3}) keep(trial, 3);
  }

  void keep(int trial, int epoch) {
    kept.save(trial, epoch,
              state_of({{"head.weight", {1, static_cast<float>(trial)}},
                        {"optimizer.weight", {2}},  // a layer that is called so
                        {"optimizer.momentum_buffer.head.weight", {0, 0}},
                        {"optimizer.momentum_buffer.optimizer.weight", {0}}}));
  }

  std::vector<std::byte> exported(std::optional<int> number = {}) {
    return export_trial(study.config, *store, states, number, ExportFormat::kWeights).front().bytes;
  }

  StudyFixture study;
  std::unique_ptr<storage::Store> store;
  storage::StudyStates states;
  storage::Checkpoints& kept;

 private:
  static trials::ParamValue extremes_of(const trials::Parameter& p) {
    return p.distribution.values.empty() ? trials::ParamValue(p.distribution.min) : p.distribution.values.front();
  }
};

TEST_CASE("the best trial's weights are exported, without the optimizer's") {
  Finished finished;
  const std::vector<std::byte> best = finished.exported();
  const fusion::SafetensorsFile file = fusion::parse_safetensors(best);
  REQUIRE(file.tensors.size() == 2);
  CHECK(contents(best)["head.weight"] == contents(state_of({{"w", {1, 1}}}))["w"]);
  CHECK(contents(best).contains("optimizer.weight"));
  CHECK(file.metadata ==
        std::map<std::string, std::string>{
            {"format", "pt"}, {"study", "digits"}, {"trial", "1"}, {"epoch", "3"}, {"val_accuracy", "0.87"}});
  CHECK(contents(finished.exported(3))["head.weight"] == contents(state_of({{"w", {1, 3}}}))["w"]);
}

TEST_CASE("trials that cannot be exported are told apart") {
  Finished finished;
  CHECK_THROWS_WITH(finished.exported(0),
                    "study 'digits': found no weights of trial 0 (COMPLETE), wanted one of the "
                    "best 10 finished trials: kept are 1, 3");
  CHECK_THROWS_WITH(finished.exported(2), Catch::Contains("trial 2 (PRUNED)") && Catch::Contains("kept are 1, 3"));
  CHECK_THROWS_WITH(finished.exported(4), "--trial: found 4, wanted a trial of study 'digits', 0 to 3");
  CHECK_THROWS_AS(finished.exported(-1), Error);
  for (const int trial : {1, 3}) finished.kept.remove(trial);
  CHECK_THROWS_WITH(finished.exported(), Catch::EndsWith("trial 1 (COMPLETE), wanted one of the best 10 finished "
                                                         "trials: none is kept"));
}

TEST_CASE("a state of another epoch than the value's is not passed off as it") {
  Finished finished;
  finished.kept.remove(1);
  finished.keep(1, 2);
  try {
    (void)finished.exported(1);
    FAIL("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kStorage);
    CHECK_THAT(error.what(), Catch::Contains("trial 1: found weights of epoch 2"));
  }
}

TEST_CASE("a study without a COMPLETE trial has nothing to export") {
  StudyFixture study(digits_config());
  const std::unique_ptr<storage::Store> store = study.open();
  store->create(new_record(study.config, {}));
  storage::StudyStates kept(study.files, study.checkpoints);
  CHECK_THROWS_WITH(export_trial(study.config, *store, kept, {}, ExportFormat::kWeights),
                    "study 'digits': found none that is best (no trial is COMPLETE), wanted one to export");
}

// The importer's golden archive: tied weights, a frozen bias, an unused parameter, statistics, a constant.
const std::filesystem::path kModel = hfta::testing::source_folder() / "tests/fusion/pt2/golden/torch-2.11.pt2";

StudyConfig config_of_file(const std::filesystem::path& file) {
  StudyConfig config = digits_config();
  config.task = [file](const trials::Params&) {
    TaskSpec task;
    task.model_file = ModelFile{};
    task.model_file->name = "m.pt2";
    task.model_file->file = file;
    task.model_file->import.dtype = fusion::DType::kFloat64;
    return task;
  };
  return config;
}

TEST_CASE("what trials of a model file share is taken from the file") {
  Finished finished(config_of_file(kModel));
  const fusion::ExportedModel model = fusion::ExportedModel::read(kModel);
  fusion::ImportOptions options;
  options.dtype = fusion::DType::kFloat64;
  std::map<std::string, std::vector<double>> trained;
  std::vector<TensorView> views;
  for (const fusion::Weight& weight : model.graph(options).weights) {
    if (!weight.trained) continue;
    const auto size = static_cast<std::size_t>(fusion::elements_of(weight.shape, 1));
    const std::vector<double>& values = trained[weight.name] =
        std::vector<double>(size, 1.0 + static_cast<double>(views.size()));
    views.push_back({weight.name, "F64", weight.shape, std::as_bytes(std::span(values))});
  }
  REQUIRE(trained.size() > 5);
  finished.kept.save(1, 3, fusion::write_safetensors(views, {}));

  const std::vector<std::byte> file = finished.exported(1);
  const fusion::SafetensorsFile exported = fusion::parse_safetensors(file);
  REQUIRE(exported.tensors.size() == model.state().size());
  std::map<std::string, const TensorView*> by_name;
  for (const TensorView& tensor : exported.tensors) by_name[tensor.name] = &tensor;
  for (const fusion::StateEntry& entry : model.state()) {
    CAPTURE(entry.name);
    REQUIRE(by_name.contains(entry.name));
    const TensorView& tensor = *by_name.at(entry.name);
    CHECK(tensor.shape == entry.value->shape);
    CHECK(tensor.dtype == (fusion::is_floating(entry.value->dtype) ? "F64" : "I64"));
  }
  for (const char* name : {"first.weight", "second.weight"}) {  // one tensor
    REQUIRE(by_name.contains(name));
    CHECK(std::ranges::equal(by_name[name]->bytes, std::as_bytes(std::span(trained.at("first.weight")))));
  }
  CHECK_FALSE(trained.contains("head.bias"));
  REQUIRE(by_name.contains("unused"));
  const std::vector<double> ones = {1, 1};
  CHECK(std::ranges::equal(by_name["unused"]->bytes, std::as_bytes(std::span(ones))));
  CHECK_FALSE(by_name.contains("scale"));
}

TEST_CASE("complex weights are exported as complex64, in the model's shapes") {
  const std::filesystem::path model = hfta::testing::source_folder() / "tests/fusion/pt2/golden/complex.pt2";
  Finished finished(config_of_file(model));
  std::vector<double> bias(6 * 2);
  std::iota(bias.begin(), bias.end(), 0.5);
  const TensorView pairs{"layer.bias", "F64", {6, 2}, std::as_bytes(std::span(bias))};
  finished.kept.save(1, 3, fusion::write_safetensors(std::span(&pairs, 1), {}));
  const std::vector<std::byte> file = finished.exported(1);
  const std::vector<float> rounded(bias.begin(), bias.end());
  std::set<std::string> names;
  for (const TensorView& tensor : fusion::parse_safetensors(file).tensors) {
    CAPTURE(tensor.name);
    names.insert(tensor.name);
    CHECK(tensor.dtype == "C64");
    if (tensor.name != "layer.bias") continue;
    CHECK(tensor.shape == fusion::Shape{6});
    CHECK(std::ranges::equal(tensor.bytes, std::as_bytes(std::span(rounded))));
  }
  CHECK(names == std::set<std::string>{"gain", "layer.bias", "layer.weight", "mix"});
}

// A trial of rank 2 in a study whose largest is 4, with adapters of the head and a convolution that is trained whole.
class Adapted {
 public:
  Adapted() : finished(config()) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = i < 2 * 8 ? 0.25 * static_cast<double>(i + 1) : 0;
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = i % 4 < 2 ? static_cast<double>(i) - 3 : 0;
    keep({});
  }

  static StudyConfig config() {
    StudyConfig config = config_of_file(kModel);
    config.task = [task = config.task](const trials::Params& params) {
      TaskSpec spec = task(params);
      fusion::Lora& lora = spec.model_file->import.lora.emplace();
      lora.targets = {"head"};
      lora.train = {"conv"};
      lora.rank = 2;
      lora.largest_rank = 4;
      lora.alpha = 6;
      return spec;
    };
    return config;
  }

  void keep(std::vector<TensorView> more) {
    more.push_back({"conv.bias", "F64", {2}, std::as_bytes(std::span(bias))});
    more.push_back({"head.lora_A.weight", "F64", {4, 8}, std::as_bytes(std::span(a))});
    more.push_back({"head.lora_B.weight", "F64", {3, 4}, std::as_bytes(std::span(b))});
    finished.kept.save(1, 3, fusion::write_safetensors(more, {}));
  }

  std::vector<ExportedFile> files(ExportFormat format) {
    return export_trial(finished.study.config, *finished.store, finished.states, 1, format);
  }

  Finished finished;
  std::vector<double> a = std::vector<double>(4 * 8), b = std::vector<double>(3 * 4), bias = {5, 6};
};

std::vector<double> numbers(const TensorView& tensor) {
  std::vector<double> values(tensor.bytes.size() / sizeof(double));
  std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

TEST_CASE("adapters are exported as PEFT's folder, at their true rank", "[adapters]") {
  Adapted adapted;
  const std::vector<ExportedFile> files = adapted.files(ExportFormat::kPeft);
  REQUIRE(files.size() == 2);
  CHECK(files[0].name == "adapter_config.json");
  CHECK(files[1].name == "adapter_model.safetensors");
  const auto config =
      nlohmann::json::parse(std::string(reinterpret_cast<const char*>(files[0].bytes.data()), files[0].bytes.size()));
  CHECK(config.at("peft_type") == "LORA");
  CHECK(config.at("r") == 2);
  CHECK(config.at("lora_alpha") == 6);
  CHECK(config.at("target_modules") == std::vector<std::string>{"head"});
  CHECK(config.at("modules_to_save") == std::vector<std::string>{"conv"});
  CHECK(config.at("rank_pattern").empty());
  std::map<std::string, TensorView> tensors;
  for (const TensorView& tensor : fusion::parse_safetensors(files[1].bytes).tensors) tensors[tensor.name] = tensor;
  REQUIRE(tensors.size() == 4);  // the convolution is saved whole, its frozen weight too
  CHECK(tensors.at("base_model.model.head.lora_A.weight").shape == fusion::Shape{2, 8});
  CHECK(tensors.at("base_model.model.head.lora_B.weight").shape == fusion::Shape{3, 2});
  CHECK(numbers(tensors.at("base_model.model.head.lora_B.weight")) == std::vector<double>{-3, -2, 1, 2, 5, 6});
  CHECK(numbers(tensors.at("base_model.model.conv.bias")) == adapted.bias);
  CHECK(tensors.contains("base_model.model.conv.weight"));
}

TEST_CASE("adapters are merged into the weights of their layers", "[adapters]") {
  Adapted adapted;
  const ExportFormat format = GENERATE(ExportFormat::kWeights, ExportFormat::kMerged);
  const std::vector<ExportedFile> files = adapted.files(format);
  REQUIRE(files.size() == 1);
  const fusion::ExportedModel model = fusion::ExportedModel::read(kModel);
  std::map<std::string, TensorView> tensors;
  for (const TensorView& tensor : fusion::parse_safetensors(files[0].bytes).tensors) tensors[tensor.name] = tensor;
  CHECK(tensors.size() == model.state().size());
  CHECK(numbers(tensors.at("conv.bias")) == adapted.bias);
  const auto own = std::find_if(model.state().begin(), model.state().end(),
                                [](const fusion::StateEntry& entry) { return entry.name == "head.weight"; });
  const std::vector<double> merged = numbers(tensors.at("head.weight"));
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 8; ++c) {
      float before;
      std::memcpy(&before, own->value->bytes.data() + (8 * r + c) * sizeof(float), sizeof(float));
      const double product = adapted.b[4 * r] * adapted.a[c] + adapted.b[4 * r + 1] * adapted.a[8 + c];
      CHECK(merged[8 * r + c] == Approx(static_cast<double>(before) + 3 * product).epsilon(1e-12));
    }
  }
}

TEST_CASE("what PEFT's folder has no place for is named", "[adapters]") {
  Adapted adapted;
  const std::vector<double> mean = {1, 2};
  adapted.keep({{"norm.running_mean", "F64", {2}, std::as_bytes(std::span(mean))}});
  CHECK_THROWS_WITH(adapted.files(ExportFormat::kPeft),
                    Catch::Contains("'norm.running_mean' changed while the trial was trained"));
  CHECK(adapted.files(ExportFormat::kMerged).size() == 1);
  Finished plain(config_of_file(kModel));
  CHECK_THROWS_WITH(export_trial(plain.study.config, *plain.store, plain.states, 1, ExportFormat::kPeft),
                    Catch::Contains("found a model without adapters"));
  Finished layers;
  CHECK_THROWS_WITH(export_trial(layers.study.config, *layers.store, layers.states, 1, ExportFormat::kPeft),
                    Catch::Contains("has a model of layers, which has no adapters"));
}

TEST_CASE("a model file that is gone, or another than was trained, is not exported from") {
  Finished finished(config_of_file(kModel));
  ModelFacts facts;
  facts.file = "m.pt2";
  facts.fingerprint = "another";
  finished.store->update(continued(*finished.store->find("digits"), finished.study.config, {}, {{facts}, {}}));
  CHECK_THROWS_WITH(finished.exported(1), Catch::Contains("torch-2.11.pt2: found another model (fingerprint ") &&
                                              Catch::Contains("than study 'digits' trained (another)"));
  finished.study.config = config_of_file("/nowhere/m.pt2");
  CHECK_THROWS_WITH(finished.exported(1), Catch::Contains("m.pt2"));
}

TEST_CASE("matrices of shapes that do not fit are refused, not read beyond their ends") {
  const Matrix matrix{2, 3, {1, 2, 3, 4, 5, 6}};
  CHECK(corner(matrix, 1, 2).values == std::vector<double>{1, 2});
  CHECK_THROWS_AS(corner(matrix, 3, 3), Error);
  CHECK_THROWS_AS(corner(matrix, 2, 4), Error);
  CHECK(product(matrix, transposed(matrix)).values == std::vector<double>{14, 32, 32, 77});
  CHECK_THROWS_AS(product(matrix, matrix), Error);
}

}  // namespace
