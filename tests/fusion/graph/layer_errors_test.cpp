#include <catch2/catch.hpp>

#include "base/error.hpp"
#include "layer_text.hpp"

namespace hfta::fusion::test {
namespace {

struct ErrorCase {
  std::string layers;
  Shape input;
  std::string message;
};

void check_errors(const std::vector<ErrorCase>& cases) {
  for (const ErrorCase& c : cases) {
    CAPTURE(c.layers);
    std::string message = "(none)";
    try {
      (void)parse_graph(c.layers, c.input);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::kConfig);
      message = error.what();
    }
    CHECK(message == c.message);
  }
}

TEST_CASE("inputs that do not fit are named with both shapes", "[layers]") {
  check_errors({
      {"relu | relu | linear 64 10", {kBatch, 128}, "net:3: layers.2 (linear): found input [N, 128], wanted [N, 64]"},
      {"linear 64 10", {kBatch, 3, 128}, "net:1: layers.0 (linear): found input [N, 3, 128], wanted [N, 3, 64]"},
      {"linear 64 10",
       {kBatch, 1, 8, 8},
       "net:1: layers.0 (linear): found input [N, 1, 8, 8], wanted [N, 64]; put flatten before it"},
      {"linear 1 10", {kBatch}, "net:1: layers.0 (linear): found input [N], wanted [N, 1]"},
      {"conv2d 3 8 3", {kBatch, 1, 8, 8}, "net:1: layers.0 (conv2d): found input [N, 1, 8, 8], wanted [N, 3, H, W]"},
      {"conv2d 1 8 3",
       {kBatch, 8, 9},
       "net:1: layers.0 (conv2d): found input [N, 8, 9], wanted [N, 1, H, W]; put {reshape: [1, 8, 9]} before it to "
       "give samples a channel dimension"},
      {"conv1d 1 8 3",
       {kBatch, 10},
       "net:1: layers.0 (conv1d): found input [N, 10], wanted [N, 1, L]; put {reshape: [1, 10]} before it to give "
       "samples a channel dimension"},
      {"conv2d 1 8 3", {kBatch, 64}, "net:1: layers.0 (conv2d): found input [N, 64], wanted [N, 1, H, W]"},
      {"conv1d 4 8 3", {kBatch, 4, 8, 8}, "net:1: layers.0 (conv1d): found input [N, 4, 8, 8], wanted [N, 4, L]"},
      {"conv2d 1 8 9 padding=[1,0]",
       {kBatch, 1, 8, 8},
       "net:1: layers.0 (conv2d): found input [N, 1, 8, 8] (8 with padding along dimension 3), wanted at least the "
       "kernel's reach, 9"},
      {"batch_norm1d 8", {kBatch, 4}, "net:1: layers.0 (batch_norm1d): found input [N, 4], wanted [N, 8]"},
      {"batch_norm1d 8", {kBatch, 4, 8}, "net:1: layers.0 (batch_norm1d): found input [N, 4, 8], wanted [N, 8, L]"},
      {"batch_norm1d 4", {kBatch, 4, 8, 8}, "net:1: layers.0 (batch_norm1d): found input [N, 4, 8, 8], wanted [N, 4]"},
      {"batch_norm2d 4", {kBatch, 4}, "net:1: layers.0 (batch_norm2d): found input [N, 4], wanted [N, 4, H, W]"},
      {"layer_norm [8,8]", {kBatch, 8}, "net:1: layers.0 (layer_norm): found input [N, 8], wanted [N, ..., 8, 8]"},
      {"layer_norm 4", {kBatch, 8}, "net:1: layers.0 (layer_norm): found input [N, 8], wanted [N, ..., 4]"},
      {"max_pool2d 2", {kBatch, 8}, "net:1: layers.0 (max_pool2d): found input [N, 8], wanted [N, C, H, W]"},
      {"avg_pool1d 2", {kBatch, 8}, "net:1: layers.0 (avg_pool1d): found input [N, 8], wanted [N, C, L]"},
      {"adaptive_avg_pool2d 1",
       {kBatch, 8, 8},
       "net:1: layers.0 (adaptive_avg_pool2d): found input [N, 8, 8], wanted [N, C, H, W]"},
      {"max_pool2d 9",
       {kBatch, 1, 8, 8},
       "net:1: layers.0 (max_pool2d): found input [N, 1, 8, 8] (8 with padding along dimension 2), wanted at least the "
       "kernel's reach, 9"},
      {"linear 8 8 as=a | linear 8 4 | add a",
       {kBatch, 8},
       "net:3: layers.2 (add): found input [N, 4], wanted that of 'a', [N, 8]"},
  });
}

TEST_CASE("joins of what does not fit are refused", "[layers]") {
  check_errors({
      {"conv2d 1 4 3 as=a | max_pool2d 2 | concat a",
       {kBatch, 1, 8, 8},
       "net:3: layers.2 (concat): found input [N, 4, 3, 3], wanted that of 'a', [N, 4, 6, 6], but for dimension 1"},
      {"linear 8 8 as=a | unflatten 1 [2,4] | concat a",
       {kBatch, 8},
       "net:3: layers.2 (concat): found input [N, 2, 4], wanted that of 'a', [N, 8], but for dimension 1"},
      {"linear 8 8 as=stem | add steam",
       {kBatch, 8},
       "net:2: layers.1 (add): other: found 'steam', wanted the name of an earlier layer; did you mean 'stem'?"},
      {"linear 8 8 | add layers.1",
       {kBatch, 8},
       "net:2: layers.1 (add): other: found 'layers.1', wanted the name of an earlier layer; did you mean 'layers.0'?"},
      {"linear 8 8 | add",
       {kBatch, 8},
       "net:2: layers.1 (add): other: found nothing, wanted the name of an earlier layer"},
      {"linear 8 8 | add 0", {kBatch, 8}, "net:2: layers.1 (add): other: found 0, wanted the name of an earlier layer"},
      {"linear 8 8 | concat input 0",
       {kBatch, 8},
       "net:2: layers.1 (concat): dim: found 0, wanted a dimension of input [N, 8] other than the batch's: 1 to 1"},
      {"linear 8 8 as=a | relu as=a",
       {kBatch, 8},
       "net:2: layers.1 (relu): name: found 'a', wanted one that no earlier layer has"},
      {"linear 8 8 as=a.b",
       {kBatch, 8},
       "net:1: layers.0 (linear): name: found 'a.b', wanted letters, digits, _ and -, a letter first"},
      {"linear 8 8 as=input",
       {kBatch, 8},
       "net:1: layers.0 (linear): name: found 'input', wanted one that no earlier layer has"},
  });
}

TEST_CASE("kinds and arguments are checked, and the nearest named", "[layers]") {
  const Shape flat{kBatch, 8};
  const Shape image{kBatch, 4, 8, 8};
  check_errors({
      {"liner 8 4", flat, "net:1: layers.0: found 'liner', wanted a kind of layer; did you mean 'linear'?"},
      {"conv_2d 1 4 3", image, "net:1: layers.0: found 'conv_2d', wanted a kind of layer; did you mean 'conv2d'?"},
      {"linear 8 4 true 1", flat,
       "net:1: layers.0 (linear): arguments: found 4, wanted at most 3: in_features, out_features, bias"},
      {"relu 1", flat, "net:1: layers.0 (relu): arguments: found 1, wanted none"},
      {"relu inplace=true", flat, "net:1: layers.0 (relu): found argument 'inplace', wanted none"},
      {"linear 8 4 bais=true", flat,
       "net:1: layers.0 (linear): found argument 'bais', wanted one of this kind's; did you mean 'bias'?"},
      {"linear 8 in_features=8", flat, "net:1: layers.0 (linear): in_features: found it twice, wanted it once"},
      {"linear 8", flat, "net:1: layers.0 (linear): out_features: found nothing, wanted an integer of at least 1"},
      {"linear 8 0", flat, "net:1: layers.0 (linear): out_features: found 0, wanted an integer of at least 1"},
      {"linear 8 2.5", flat, "net:1: layers.0 (linear): out_features: found 2.5, wanted an integer of at least 1"},
      {"linear 8 x", flat, "net:1: layers.0 (linear): out_features: found 'x', wanted an integer of at least 1"},
      {"linear 8 true", flat, "net:1: layers.0 (linear): out_features: found true, wanted an integer of at least 1"},
      {"linear 8 4 1", flat, "net:1: layers.0 (linear): bias: found 1, wanted true or false"},
      {"dropout 1.5", flat, "net:1: layers.0 (dropout): p: found 1.5, wanted a number from 0 to 1"},
      {"dropout -0.1", flat, "net:1: layers.0 (dropout): p: found -0.1, wanted a number from 0 to 1"},
      {"dropout nan", flat, "net:1: layers.0 (dropout): p: found nan, wanted a number from 0 to 1"},
      {"dropout [1,2]", flat, "net:1: layers.0 (dropout): p: found [1, 2], wanted a number from 0 to 1"},
      {"leaky_relu inf", flat, "net:1: layers.0 (leaky_relu): negative_slope: found inf, wanted a number"},
      {"gelu fast", flat, "net:1: layers.0 (gelu): approximate: found 'fast', wanted 'none' or 'tanh'"},
      {"softplus 0", flat, "net:1: layers.0 (softplus): beta: found 0, wanted a number above 0"},
      {"hardtanh 2", flat, "net:1: layers.0 (hardtanh): min_val: found 2, wanted less than max_val = 1"},
      {"batch_norm1d 8 -1", flat, "net:1: layers.0 (batch_norm1d): eps: found -1, wanted a number of at least 0"},
      {"batch_norm1d 8 momentum=2", flat,
       "net:1: layers.0 (batch_norm1d): momentum: found 2, wanted a number from 0 to 1"},
      {"conv2d 4 4 0", image,
       "net:1: layers.0 (conv2d): kernel_size: found 0, wanted an integer or 2 of them, each from 1 to 2147483647"},
      {"conv2d 4 4 [3,3,3]", image,
       "net:1: layers.0 (conv2d): kernel_size: found [3, 3, 3], wanted an integer or 2 of them, each from 1 to "
       "2147483647"},
      {"conv2d 4 4 3 padding=full", image,
       "net:1: layers.0 (conv2d): padding: found 'full', wanted an integer or 2 of them, each from 0 to 2147483647 or "
       "'same' or 'valid'"},
      {"conv2d 4 4 3 2 same", image, "net:1: layers.0 (conv2d): padding: found 'same' with stride 2, wanted stride 1"},
      {"conv2d 4 4 3 groups=3", image,
       "net:1: layers.0 (conv2d): in_channels: found 4, wanted a multiple of groups = 3"},
      {"conv2d 4 3 3 groups=2", image,
       "net:1: layers.0 (conv2d): out_channels: found 3, wanted a multiple of groups = 2"},
      {"max_pool2d 2 padding=2", image,
       "net:1: layers.0 (max_pool2d): padding: found 2, wanted at most half of the kernel's reach of 2"},
      {"max_pool1d 2 stride=[1,2]",
       {kBatch, 4, 8},
       "net:1: layers.0 (max_pool1d): stride: found [1, 2], wanted an integer from 1 to 2147483647"},
      {"softmax", image, "net:1: layers.0 (softmax): dim: found nothing on input [N, 4, 8, 8], wanted a dimension"},
      {"softmax 0", flat,
       "net:1: layers.0 (softmax): dim: found 0, wanted a dimension of input [N, 8] other than the batch's: 1 to 1"},
      {"flatten 0", image,
       "net:1: layers.0 (flatten): start_dim: found 0, wanted a dimension of input [N, 4, 8, 8] other than the "
       "batch's: 1 to 3"},
      {"flatten 3 1", image, "net:1: layers.0 (flatten): start_dim: found 3, wanted at most end_dim = 1"},
      {"reshape 3 3", flat,
       "net:1: layers.0 (reshape): shape: found [3, 3] for input [N, 8], wanted sizes of 8 elements"},
      {"reshape -1 3", flat,
       "net:1: layers.0 (reshape): shape: found [-1, 3] for input [N, 8], wanted sizes of 8 elements"},
      {"reshape -1 -1", flat, "net:1: layers.0 (reshape): shape: found 2 sizes of -1, wanted at most one"},
      {"reshape 0 8", flat, "net:1: layers.0 (reshape): shape: found 0, wanted sizes of at least 1, or one -1"},
      {"reshape 8 1099511627776 1099511627776 1099511627776", flat,
       "net:1: layers.0 (reshape): shape: found [8, 1099511627776, 1099511627776, 1099511627776] for input [N, 8], "
       "wanted sizes of 8 elements"},
  });
}

TEST_CASE("absurd sizes are errors, not overflows", "[layers]") {
  check_errors({
      {"linear 1000000000000 1000000000000",
       {kBatch, 1000000000000},
       "net:1: layers.0 (linear): found layers.0.weight of shape [1000000000000, 1000000000000], wanted at most "
       "1099511627776 elements"},
      {"linear 8 9223372036854775807",
       {kBatch, 8},
       "net:1: layers.0 (linear): found layers.0.weight of shape [9223372036854775807, 8], wanted at most "
       "1099511627776 "
       "elements"},
      {"linear 1048576 1048576 false | linear 1048576 8",
       {kBatch, 1048576},
       "net:2: layers: found 1099520016392 weights in all, wanted at most 1099511627776"},
      {"conv2d 1 1 [2147483647,2147483647] dilation=2147483647",
       {kBatch, 1, 8, 8},
       "net:1: layers.0 (conv2d): found input [N, 1, 8, 8] (8 with padding along dimension 2), wanted at least the "
       "kernel's reach, 4611686011984936963"},
      {"conv2d 1 1 1 padding=2147483647",
       {kBatch, 1, 8, 8},
       "net:1: layers.0 (conv2d): found layers.0 of shape [N, 1, 4294967302, 4294967302], wanted at most 1099511627776 "
       "elements"},
      {"adaptive_avg_pool2d 2147483647",
       {kBatch, 1, 8, 8},
       "net:1: layers.0 (adaptive_avg_pool2d): found layers.0 of shape [N, 1, 2147483647, 2147483647], wanted at most "
       "1099511627776 elements"},
      {"relu",
       {kBatch, 1000000000000, 1000000000000},
       "model: found input of shape [N, 1000000000000, 1000000000000], wanted [N, ...] of sizes from 1"},
  });
}

TEST_CASE("models and inputs that cannot train are refused", "[layers]") {
  check_errors({
      {"", {kBatch, 8}, "layers: found nothing to train, wanted at least one layer with weights"},
      {"flatten | relu", {kBatch, 8}, "net:1: layers: found nothing to train, wanted at least one layer with weights"},
      {"batch_norm1d 8 affine=false",
       {kBatch, 8},
       "net:1: layers: found nothing to train, wanted at least one layer with weights"},
      {"linear 8 1", {}, "model: found input of shape [], wanted [N, ...] of sizes from 1"},
      {"linear 8 1", {8}, "model: found input of shape [8], wanted [N, ...] of sizes from 1"},
      {"linear 8 1", {kBatch, 0}, "model: found input of shape [N, 0], wanted [N, ...] of sizes from 1"},
      {"linear 8 1", {kBatch, kBatch}, "model: found input of shape [N, N], wanted [N, ...] of sizes from 1"},
  });
}

TEST_CASE("hostile names cannot move the cursor", "[layers]") {
  const std::vector<std::pair<LayerSpec, std::string>> cases = {
      {{"rel\x1b[2Ju", "", {}, {}, ""}, "rel\\x1b[2Ju"},
      {{"linear", "a\x1b", {}, {}, ""}, "a\\x1b"},
      {{"linear", "", {std::string("\n")}, {}, ""}, "found '\\x0a'"},
      {{"linear", "", {}, {{"\r", true}}, ""}, "'\\x0d'"},
      {{"add", "", {std::string("\b")}, {}, ""}, "'\\x08'"},
  };
  for (const auto& [layer, text] : cases) {
    CHECK_THROWS_WITH(build_graph({layer}, {kBatch, 8}, DType::kFloat32), Catch::Contains(text));
  }
}

}  // namespace
}  // namespace hfta::fusion::test
