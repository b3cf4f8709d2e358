#include <catch2/catch.hpp>
#include <functional>
#include <nlohmann/json.hpp>

#include "pt2_text.hpp"

namespace hfta::fusion::test {
namespace {

using Json = nlohmann::json;
using Members = std::vector<Member>;

constexpr const char* kModel = "models/model.json";
constexpr const char* kWeights = "data/weights/model_weights_config.json";

Member& member(Members& members, const std::string& name) {
  for (Member& one : members) {
    if (one.name == name) return one;
  }
  throw std::out_of_range(name);
}

void edit(Members& members, const char* name, const std::function<void(Json&)>& change) {
  Member& file = member(members, name);
  Json json = Json::parse(file.bytes);
  change(json);
  file.bytes = json.dump();
}

struct ArchiveCase {
  std::string what;
  std::function<void(Members&)> change;
  std::string message;  ///< What the error contains.
};

void check(const ArchiveCase& one) {
  Members members = unpack(bytes_of(golden("torch-2.11")));
  one.change(members);
  INFO(one.what);
  const std::string message = error_of(pack(members));
  CHECK(message.starts_with("m.pt2"));
  CHECK_THAT(message, Catch::Contains(one.message));
}

std::function<void(Members&)> in_model(const std::string& pointer, const Json& value) {
  return [=](Members& members) {
    edit(members, kModel, [&](Json& json) { json.at(Json::json_pointer(pointer)) = value; });
  };
}

std::function<void(Members&)> in_weights(const std::string& pointer, const Json& value) {
  return [=](Members& members) {
    edit(members, kWeights, [&](Json& json) { json.at(Json::json_pointer(pointer)) = value; });
  };
}

Json sizes(std::initializer_list<std::int64_t> numbers) {
  Json list = Json::array();
  for (const std::int64_t number : numbers) list.push_back({{"as_int", number}});
  return list;
}

TEST_CASE("an archive that is cut off is an error, wherever it is", "[pt2]") {
  const std::vector<std::byte> whole = bytes_of(golden("torch-2.11"));
  REQUIRE(error_of(whole) == "(none)");
  std::size_t read = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string message = error_of(std::span(whole).first(size));
    if (!message.starts_with("m.pt2: ")) FAIL("cut to " << size << " of " << whole.size() << ": " << message);
    ++read;
  }
  CHECK(read == whole.size());
}

TEST_CASE("a flipped byte of what is read is noticed", "[pt2]") {
  const std::vector<std::byte> whole = bytes_of(golden("torch-2.11"));
  const std::string text(reinterpret_cast<const char*>(whole.data()), whole.size());
  for (const char* needle : {"p_conv_weight", "PK\1\2", "\"config\"", "PK\5\6"}) {
    INFO(needle);
    std::vector<std::byte> bytes = whole;
    bytes.at(text.rfind(needle) + 1) ^= std::byte{0x20};
    CHECK(error_of(bytes).starts_with("m.pt2"));
  }
}

TEST_CASE("older archives say which torch to use", "[pt2]") {
  const std::string version = GENERATE(as<std::string>(), "2.6", "2.7", "2.8");
  CHECK_THAT(error_of(bytes_of(golden("torch-" + version))),
             Catch::Contains("found an archive of torch " + version) &&
                 Catch::Contains("wanted one of torch 2.9 or newer: export the model again there"));
}

TEST_CASE("models that cannot be trained fused name the line to change", "[pt2]") {
  const auto [name, message] = GENERATE(table<std::string, std::string>(
      {{"control-flow",
        "m.pt2: golden_forms.py:103: (model) (torch.ops.higher_order.cond): 'cond' is control flow, which cannot be "
        "trained fused"},
       {"selection",
        "m.pt2: golden_forms.py:108: (model) (torch.ops.aten.index.Tensor): the size of its result depends on"},
       {"autocast", "torch.autocast is on within the model"},
       {"two-sizes", "m.pt2: inputs disagree about the batch size, their first dimension: 'x' 3, 'y' 4"},
       {"writes", "m.pt2: the model writes into its input 'x'"}}));
  CHECK_THAT(error_of(bytes_of(golden(name))), Catch::Contains(message));
}

TEST_CASE("archives of another kind", "[pt2]") {
  check(GENERATE(values<ArchiveCase>({
      {"no model", [](Members& m) { member(m, kModel).name = "other.json"; }, "found no exported model"},
      {"compiled", [](Members& m) { member(m, kModel).name = "data/aotinductor/model/a.so"; },
       "found a package of compiled code (AOTInductor)"},
      {"several models",
       [](Members& m) {
         member(m, kModel).name = "models/a.json";
         m.push_back({"models/b.json", "{}"});
       },
       "found several models: a, b; wanted one"},
      {"big-endian", [](Members& m) { member(m, "byteorder").bytes = "big"; }, "big-endian"},
      {"later archive", [](Members& m) { member(m, "archive_version").bytes = "1"; },
       "found archive version 1, wanted 0"},
      {"two of a name", [](Members& m) { m.push_back(m.front()); }, "found two members of this name"},
      {"no weights config", [](Members& m) { member(m, kWeights).name = "x"; }, "found no member 'data/weights/model_"},
      {"no weight", [](Members& m) { member(m, "data/weights/weight_3").name = "x"; },
       "found no member 'data/weights/"},
      {"no constants", [](Members& m) { member(m, "data/constants/model_constants_config.json").name = "x"; },
       "no member"},
      {"above its folder",
       [](Members& m) {
         m.push_back({"../../etc/passwd", ""});
       },
       "wanted names within the archive"},
      {"no JSON", [](Members& m) { member(m, kModel).bytes = "{\"a\": "; }, "found damaged JSON"},
      {"not UTF-8", [](Members& m) { member(m, kModel).bytes = "\"\xff\""; }, "found damaged JSON"},
      {"deep JSON", [](Members& m) { member(m, kModel).bytes = std::string(1'000'000, '['); },
       "nested deeper than 200"},
      {"empty JSON", [](Members& m) { member(m, kModel).bytes = ""; }, "found damaged JSON"},
      {"a list", [](Members& m) { member(m, kModel).bytes = "[]"; }, "wanted an object"},
  })));
}

TEST_CASE("weights that are not what the archive says", "[pt2]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const std::string meta = "/config/head.weight/tensor_meta";
  const auto at = [&](const char* field, const Json& value) { return in_weights(meta + field, value); };
  check(GENERATE_COPY(values<ArchiveCase>({
      {"short", [](Members& m) { member(m, "data/weights/weight_8").bytes.pop_back(); },
       "found 95 bytes in data/weights/weight_8, wanted 96"},
      {"fake", [](Members& m) { member(m, "data/weights/weight_8").bytes = ""; }, "was it exported without data"},
      {"pickled", in_weights("/config/head.weight/use_pickle", true), "found a pickled tensor, which is never read"},
      {"elsewhere", in_weights("/config/head.weight/path_name", "../../x"), "found no member 'data/weights/../../x'"},
      {"no name", in_weights("/config/head.weight/path_name", 3), "found 3, wanted text"},
      {"negative size", at("/sizes", sizes({-3, 8})), "found a size of -3, wanted a number from 0 on"},
      {"10 GB", at("/sizes", sizes({300'000'000, 8})), "wanted 9600000000 for a tensor"},
      {"repeated without end",
       [&](Members& m) {
         at("/sizes", sizes({300'000'000, 8}))(m);
         at("/strides", sizes({0, 1}))(m);
       },
       "found tensors of 96"},
      {"overflow", at("/sizes", sizes({kHuge, 8})), "beyond what a machine can address"},
      {"nothing, but huge", at("/sizes", sizes({0, kHuge})), "beyond what a machine can address"},
      {"overflowing stride", at("/strides", sizes({kHuge, 1})), "beyond what a machine can address"},
      {"negative stride", at("/strides", sizes({-8, 1})), "found a stride of -8"},
      {"far stride", at("/strides", sizes({9, 1})), "found 96 bytes in data/weights/weight_8, wanted 104"},
      {"one stride", at("/strides", sizes({8})), "found 1 strides for 2 sizes"},
      {"negative offset", at("/storage_offset", {{"as_int", -1}}), "found a storage offset of -1"},
      {"far offset", at("/storage_offset", {{"as_int", 1}}), "wanted 100"},
      {"symbolic size", at("/sizes/0", {{"as_expr", {{"expr_str", "Symbol('s0')"}}}}), "found a size of Symbol('s0')"},
      {"fractional size", at("/sizes/0", {{"as_int", 1.5}}), "found 1.5, wanted an integer"},
      {"enormous size", at("/sizes/0", {{"as_int", 18446744073709551615U}}), "wanted an integer"},
      {"complex", at("/dtype", 10), "found 96 bytes in data/weights/weight_8, wanted 192"},
      {"complex of 128 bits", at("/dtype", 11), "found 96 bytes in data/weights/weight_8, wanted 384"},
      {"complex of 32 bits", at("/dtype", 9), "found scalar type 9 (complex32)"},
      {"unknown type", at("/dtype", 99), "found scalar type 99"},
      {"sparse", at("/layout", 1), "found a sparse tensor"},
      {"no meta", in_weights("/config/head.weight/tensor_meta", nullptr), "wanted an object"},
  })));
}

TEST_CASE("graphs that are not what the schema says", "[pt2]") {
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  const std::string graph = "/graph_module/graph";
  const std::string first = graph + "/nodes/0";
  const auto in_graph = [&](const std::string& pointer, const Json& value) { return in_model(graph + pointer, value); };
  const Json unbacked = {{"as_expr", {{"expr_str", "Symbol('u0', integer=True)"}, {"hint", nullptr}}}};
  check(GENERATE_COPY(values<ArchiveCase>({
      {"schema", in_model("/schema_version/major", 9),
       "found an archive of torch 2.11.0+cu130 with schema 9.17, wanted schema 8"},
      {"no signature", in_model("/graph_module/signature", nullptr), "wanted an object with 'input_specs'"},
      {"nodes", in_graph("/nodes", 3), "found 3, wanted a list"},
      {"input of no value", in_graph("/nodes/0/inputs/0/arg/as_tensor/name", "y"), "found no value of the name 'y'"},
      {"two of a name", in_graph("/nodes/1/outputs/0/as_tensor/name", "conv2d"),
       "found two values of the name 'conv2d'"},
      {"no meta", in_graph("/tensor_values/conv2d", nullptr), "wanted an object"},
      {"op of no library", in_graph("/nodes/0/target", "os.system"), "this op cannot be trained fused"},
      {"control flow", in_graph("/nodes/0/target", "torch.ops.higher_order.while_loop"),
       "make_golden.py:33: conv (torch.ops.higher_order.while_loop): 'while_loop' is control flow, which cannot be "
       "trained fused"},
      {"half of a complex number", in_graph("/nodes/0/inputs/3/arg", {{"as_complex", {{"real", 1}}}}),
       "as_complex: found no 'imag'"},
      {"complex input", in_graph("/tensor_values/x/dtype", 10), "found input 'x' of complex numbers, wanted real ones"},
      {"complex for a real weight", in_graph("/tensor_values/p_head_weight/dtype", 10),
       "found 'head.weight' stored as float32 [3, 8], wanted what the graph declares, complex64"},
      {"tensor as a size", in_graph("/nodes/0/inputs/3/arg", {{"as_sym_ints", {{{"as_name", "x"}}, {{"as_int", 1}}}}}),
       "found the tensor 'x' as a size, wanted a number"},
      {"tensor as a number", in_graph("/nodes/3/target", "_operator.neg"), "argument 0 is no number"},
      {"script object", in_graph("/nodes/0/inputs/0/arg", {{"as_custom_obj", {{"name", "a"}}}}),
       "found an argument of kind 'as_custom_obj'"},
      {"empty argument", in_graph("/nodes/0/inputs/0/arg", Json::object()), "found an empty union"},
      {"result", in_graph("/nodes/0/outputs/0", {{"as_int", 1}}), "found a result of kind 'as_int'"},
      {"number of a tensor", in_graph("/nodes/0/outputs/0", {{"as_sym_int", {{"as_name", "i"}}}}),
       "reads a number out of a tensor"},
      {"negative size", in_graph("/tensor_values/conv2d/sizes/1", {{"as_int", -2}}), "found a size of -2"},
      {"enormous value", in_graph("/tensor_values/conv2d/sizes/1", {{"as_int", kHuge}}), "beyond any machine"},
      {"data-dependent", in_graph("/tensor_values/conv2d/sizes/1", unbacked),
       "make_golden.py:33: conv (torch.ops.aten.conv2d.default): the size of its result depends on the data"},
      {"memory format", in_graph("/nodes/0/inputs/3/arg", {{"as_memory_format", 9}}), "found memory format 9"},
      {"sparse", in_graph("/nodes/0/inputs/3/arg", {{"as_layout", 1}}), "found a sparse layout"},
      {"no dimension", in_graph("/tensor_values/x/sizes", Json::array()), "found 4 strides for 0 sizes"},
      {"batch of zero", in_graph("/tensor_values/x/sizes/0", {{"as_int", 0}}), "with a batch of 0"},
      {"batch of pairs", in_graph("/tensor_values/x/sizes/0/as_expr/expr_str", "Mul(Integer(2), Symbol('s77'))"),
       "wanted a dynamic dimension of any size"},
      {"range", in_model("/range_constraints/s77/max_val", -1), "found batches of at most -1"},
      {"no such parameter", in_model("/graph_module/signature/input_specs/1/parameter/parameter_name", "x"),
       "found no stored tensor for 'x'"},
      {"token", in_model("/graph_module/signature/input_specs/1", {{"token", {{"arg", {{"name", "t"}}}}}}),
       "found an input of kind 'token'"},
      {"number",
       in_model("/graph_module/signature/input_specs/16/user_input/arg", {{"as_sym_int", {{"as_name", "s"}}}}),
       "found an input of kind 'as_sym_int', wanted tensors"},
      {"training step",
       in_model("/graph_module/signature/output_specs/0", {{"loss_output", {{"arg", {{"name", "linear_2"}}}}}}),
       "found an output of kind 'loss_output'"},
      {"no output", in_model("/graph_module/signature/output_specs", Json::array()),
       "found no output that is a tensor"},
      {"output of no batch", in_model("/graph_module/signature/output_specs/0/user_output/arg/as_tensor/name", "add_"),
       "output '0' has the shape [], wanted the batch as its first dimension"},
      {"no buffer",
       in_model("/graph_module/signature/output_specs/0",
                {{"buffer_mutation", {{"arg", {{"name", "linear_2"}}}, {"buffer_name", "b"}}}}),
       "found a new value for 'b', which is no buffer"},
  })));
}

TEST_CASE("control characters of an archive do not reach the terminal", "[pt2]") {
  Members members = unpack(bytes_of(golden("torch-2.11")));
  in_model("/graph_module/graph/nodes/0/target", "\x1b[2Jos.system\n")(members);
  const std::string message = error_of(pack(members));
  CHECK(message.find('\x1b') == std::string::npos);
  CHECK_THAT(message, Catch::StartsWith("m.pt2: make_golden.py:33: conv (\\x1b[2Jos.system\\x0a)"));
}

TEST_CASE("what is no archive at all", "[pt2]") {
  const std::string text = "not a zip";
  CHECK(error_of(std::as_bytes(std::span(text.data(), text.size())))
            .starts_with("m.pt2: cannot read it as a .pt2 archive: "));
  CHECK_THROWS_WITH((void)ExportedModel::read("/nowhere/m.pt2"), "/nowhere/m.pt2: no such file");
  CHECK_THROWS_WITH((void)ExportedModel::read("/"), "/: found no regular file, wanted a .pt2 archive");
}

}  // namespace
}  // namespace hfta::fusion::test
