#include "fusion/op_traits.hpp"

#include <catch2/catch.hpp>

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

}  // namespace hfta::fusion
