"""Small Hugging Face models of random weights, and which of their layers are adapted."""

from dataclasses import dataclass, field
from typing import Callable

import torch
import transformers as hf
from torch import nn

CLASSES, VOCABULARY, LENGTH = 3, 60, 8
_SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], nn.Module]
    targets: list[str]
    train: list[str] = field(default_factory=list)
    kind: str = "classes"  # of texts; "words": of a language model; "images"
    task: str | None = "SEQ_CLS"  # PEFT's

    def model(self) -> nn.Module:
        """The same at every call, in training mode, dropout off: its masks are counted, which PyTorch's are not."""
        torch.manual_seed(0)
        model = self.make()
        model.config.use_cache = False  # a cache among the outputs cannot be exported
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
            if isinstance(getattr(module, "attention_dropout", None), float):
                module.attention_dropout = 0.0
            if isinstance(getattr(module, "dropout", None), float):
                module.dropout = 0.0
        return model.train()

    def inputs(self, samples: int) -> dict[str, torch.Tensor]:
        """By the names of forward's arguments, labels among them; -100 where a word does not count."""
        draw = torch.Generator().manual_seed(1)
        if self.kind == "images":
            labels = torch.randint(0, CLASSES, (samples,), generator=draw)
            return {"pixel_values": torch.randn(samples, 3, 16, 16, generator=draw), "labels": labels}
        ids = torch.randint(3, VOCABULARY, (samples, LENGTH), generator=draw)
        lengths = torch.randint(LENGTH // 2, LENGTH + 1, (samples, 1), generator=draw)
        mask = (torch.arange(LENGTH) < lengths).long()
        if self.kind == "words":
            return {"input_ids": ids, "attention_mask": mask, "labels": torch.where(mask == 1, ids, -100)}
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.randint(0, CLASSES, (samples,), generator=draw)}


def _bert():
    return hf.BertForSequenceClassification(
        hf.BertConfig(vocab_size=VOCABULARY, max_position_embeddings=16, num_labels=CLASSES, **_SIZES))


def _roberta():
    return hf.RobertaForSequenceClassification(
        hf.RobertaConfig(vocab_size=VOCABULARY, max_position_embeddings=20, num_labels=CLASSES, **_SIZES))


def _distilbert():
    return hf.DistilBertForSequenceClassification(hf.DistilBertConfig(
        vocab_size=VOCABULARY, max_position_embeddings=16, dim=32, n_layers=2, n_heads=2, hidden_dim=64, num_labels=CLASSES))


def _gpt2():
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=VOCABULARY, n_positions=16, n_embd=32, n_layer=2, n_head=2))


def _llama():
    return hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=16, num_key_value_heads=2, **_SIZES))


def _opt():
    return hf.OPTForCausalLM(hf.OPTConfig(vocab_size=VOCABULARY, max_position_embeddings=16, hidden_size=32, ffn_dim=64,
                                          num_hidden_layers=2, num_attention_heads=2, word_embed_proj_dim=32))


def _vit():
    return hf.ViTForImageClassification(hf.ViTConfig(image_size=16, patch_size=4, num_labels=CLASSES, **_SIZES))


def _qwen2():
    return hf.Qwen2ForCausalLM(hf.Qwen2Config(vocab_size=VOCABULARY, max_position_embeddings=16, num_key_value_heads=2, **_SIZES))


def _wide_llama():
    return hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=VOCABULARY, max_position_embeddings=16, hidden_size=128,
                                              intermediate_size=256, num_hidden_layers=1, num_attention_heads=2,
                                              num_key_value_heads=2))


# With matrices that are large enough to be held in the type of their file.
WIDE = Case("wide llama", _wide_llama, ["q_proj", "v_proj", "down_proj"], kind="words", task="CAUSAL_LM")

CASES = [
    Case("bert", _bert, ["query", "value"], ["classifier"]),
    Case("roberta", _roberta, ["query", "value", "output.dense"], ["classifier"]),
    Case("distilbert", _distilbert, ["q_lin", "v_lin"], ["pre_classifier", "classifier"]),
    Case("gpt2", _gpt2, ["c_attn", "c_fc"], kind="words", task="CAUSAL_LM"),
    Case("llama", _llama, ["q_proj", "v_proj", "embed_tokens"], kind="words", task="CAUSAL_LM"),
    Case("opt", _opt, ["q_proj", "v_proj", "fc1"], kind="words", task="CAUSAL_LM"),
    Case("vit", _vit, ["q_proj", "v_proj", "projection"], ["classifier"], kind="images", task=None),
    Case("qwen2", _qwen2, ["q_proj", "k_proj", "down_proj"], kind="words", task="CAUSAL_LM"),
]
