#include "fusion/op_traits.hpp"

#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "fusion/graph/ops/families.hpp"

namespace hfta::fusion {

TEST_CASE("functions of tensors, their views and their in-place forms are admitted") {
  struct Case {
    const char* op;
    OpClass kind;
    bool in_place;
  };
  const Case cases[] = {{"aten::relu", OpClass::kPointwise, false},
                        {"aten::relu_", OpClass::kPointwise, true},
                        {"aten::add_.Tensor", OpClass::kPointwise, true},
                        {"aten::__iand__.Tensor", OpClass::kPointwise, true},
                        {"aten::copy_", OpClass::kPointwise, true},
                        {"aten::where.self", OpClass::kPointwise, false},
                        {"aten::softmax.int", OpClass::kReduction, false},
                        {"aten::view", OpClass::kView, false},
                        {"aten::squeeze_.dim", OpClass::kView, true},
                        {"aten::cat", OpClass::kRearrangement, false},
                        {"aten::index_put_", OpClass::kRearrangement, true},
                        {"aten::linear", OpClass::kProduct, false},
                        {"aten::linalg_inv", OpClass::kAlgebra, false},
                        {"aten::conv2d.padding", OpClass::kConvolution, false},
                        {"aten::max_pool2d", OpClass::kPool, false},
                        {"aten::batch_norm", OpClass::kNorm, false},
                        {"aten::scaled_dot_product_attention", OpClass::kAttention, false},
                        {"aten::lstm.input", OpClass::kRecurrent, false},
                        {"aten::embedding", OpClass::kLookup, false},
                        {"aten::mse_loss", OpClass::kLoss, false},
                        {"aten::dropout_", OpClass::kRandom, true},
                        {"aten::zeros", OpClass::kFactory, false}};
  for (const Case& c : cases) {
    INFO(c.op);
    const auto traits = op_traits(c.op);
    REQUIRE(traits);
    CHECK(traits->kind == c.kind);
    CHECK(traits->in_place == c.in_place);
  }
}

TEST_CASE("everything else is not, class by class") {
  struct Class {
    const char* what;
    std::vector<const char*> ops;
  };
  const Class classes[] = {
      {"files", {"aten::from_file", "aten::save", "aten::load"}},
      {"printing and warnings", {"aten::_print", "prim::Print", "aten::warn"}},
      {"another tensor's storage, and memory behind a tensor",
       {"aten::set_", "aten::set_.source_Storage", "aten::set_.source_Storage_storage_offset", "aten::resize_",
        "aten::resize_as_", "aten::_resize_output_", "aten::as_strided", "aten::as_strided_", "aten::_reshape_alias",
        "aten::_lazy_clone", "aten::set_data"}},
      {"streams, devices and pinned memory",
       {"aten::record_stream", "aten::pin_memory", "aten::_pin_memory", "aten::cuda"}},
      {"numbers read out of tensors", {"aten::_local_scalar_dense", "aten::item", "aten::is_nonzero", "aten::equal"}},
      {"other processes", {"c10d::allreduce_", "c10d_functional::all_reduce", "_c10d_functional::broadcast"}},
      {"libraries of their own",
       {"quantized::linear", "mkldnn::_linear_pointwise", "torchvision::nms", "prepacked::run", "my_library::op",
        "torchaudio::sox_io"}},
      {"sparse, nested, quantized and packed tensors",
       {"aten::to_sparse", "aten::_sparse_coo_tensor_unsafe", "aten::_sparse_csr_tensor_unsafe",
        "aten::_nested_view_from_buffer", "aten::quantize_per_tensor", "aten::dequantize.self",
        "aten::_make_per_tensor_quantized_tensor", "aten::fbgemm_linear_int8_weight", "aten::to_mkldnn",
        "aten::mkldnn_linear", "aten::mkldnn_rnn_layer", "aten::lstm.data", "aten::gru.data",
        "aten::_pack_padded_sequence", "aten::_convert_weight_to_int4pack"}},
      {"kernels of one device, and internals",
       {"aten::cudnn_convolution", "aten::miopen_batch_norm", "aten::_cudnn_rnn", "aten::_mps_convolution",
        "aten::_transformer_encoder_layer_fwd", "aten::_native_multi_head_attention", "aten::_thnn_fused_lstm_cell",
        "aten::_index_put_impl_", "aten::_unsafe_masked_index", "aten::_foreach_add.Scalar", "aten::_fused_adam",
        "aten::_test_check_tensor", "aten::_foobar", "aten::convolution_backward", "aten::_fw_primal",
        "aten::_add_batch_dim"}},
      {"outputs of the caller's, and dimensions by name",
       {"aten::add.out", "aten::add.Scalar_out", "aten::cumsum.dimname_out", "aten::cumsum.dimname",
        "aten::sum.DimnameList_out", "aten::zeros.names", "aten::avg_pool2d_backward.grad_input", "aten::topk.values",
        "aten::div.out_mode", "aten::linalg_svd.U", "aten::_native_batch_norm_legit", "aten::_batch_norm_with_update"}},
      {"no ops", {"", "aten", "aten::", "relu", "aten::relu__", "aten::relu ", "os.system", "Aten::relu"}}};
  for (const Class& one : classes) {
    for (const char* op : one.ops) {
      INFO(one.what << ": " << op);
      CHECK_FALSE(op_traits(op));
      CHECK_FALSE(why_not_admitted(op).empty());
    }
  }
}

TEST_CASE("an op of a library is told by the library's name") {
  CHECK(why_not_admitted("torchvision::nms").find("'torchvision'") != std::string::npos);
  CHECK(why_not_admitted("aten::from_file").find("docs/models.md") != std::string::npos);
}

TEST_CASE("no op stands in two rows") {
  std::map<std::string, std::string> rows;
  for (const auto& families :
       {element_families(), shape_families(), product_families(), layer_families(), random_families()}) {
    for (const OpFamily& family : families) {
      std::istringstream words{std::string(family.names)};
      for (std::string name; words >> name;) {
        INFO(name << " in '" << family.names << "' and in '" << rows[name] << "'");
        CHECK(rows[name].empty());
        rows[name] = family.names;
        if (family.forms == Forms::kBoth) CHECK(rows.emplace(name + "_", family.names).second);
      }
    }
  }
  CHECK(rows.size() > 700);
}

TEST_CASE("an op and its form in place share a name") {
  struct Case {
    const char *op, *base, *plain;
  };
  for (const Case& c : {Case{"aten::add_.Tensor", "add", "aten::add.Tensor"}, Case{"aten::relu_", "relu", "aten::relu"},
                        Case{"aten::add.Tensor", "add", "aten::add.Tensor"},
                        Case{"aten::__iand__.Tensor", "__iand__", "aten::__iand__.Tensor"},
                        Case{"aten::copy_", "copy", "aten::copy"}, Case{"number::add", "add", "number::add"}}) {
    INFO(c.op);
    CHECK(base_name(c.op) == c.base);
    CHECK(out_of_place(c.op) == c.plain);
  }
}

TEST_CASE("an argument is found by the name that its call gives, else by the op's order") {
  const auto node = [](std::vector<Arg> args, std::vector<std::string> names) {
    return Node{"aten::dropout", std::move(args), {}, "", "", false, std::move(names)};
  };
  struct Case {
    Node node;
    const char* name;
    std::optional<Arg> found;
  };
  const Case cases[] = {{node({ValueId{0}, 0.5, true}, {}), "p", 0.5},
                        {node({ValueId{0}, true, 0.5}, {"input", "train", "p"}), "p", 0.5},
                        {node({ValueId{0}, true, 0.5}, {"input", "train", "p"}), "train", true},
                        {node({ValueId{0}, 0.5}, {"input", "p"}), "train", std::nullopt},
                        {node({ValueId{0}, 0.5}, {"", ""}), "p", 0.5},
                        {node({ValueId{0}, 0.5}, {}), "rate", std::nullopt},
                        {node({ValueId{0}, 0.5}, {}), "", std::nullopt},
                        {node({ValueId{0}, true}, {"input", "train"}), "p", std::nullopt}};
  for (const Case& c : cases) {
    INFO(c.name);
    const Arg* found = argument(c.node, c.name);
    CHECK((found == nullptr) == !c.found.has_value());
    if (found != nullptr && c.found) CHECK(*found == *c.found);
  }
}

TEST_CASE("an integer may be a factor or a number of something, by its name and its op") {
  CHECK(is_factor("aten::dropout", "p"));
  CHECK(is_factor("aten::add.Tensor", "alpha"));
  CHECK_FALSE(is_factor("aten::mvlgamma", "p"));
  CHECK_FALSE(is_factor("aten::cumsum", "dim"));
}

}  // namespace hfta::fusion
