"""Models that this program was not tuned on, as workloads: those of tests/models/zoo.py with one input, and small ones of
timm and transformers.

Weights are random and nothing is downloaded; dropout is off, as everyone draws other masks. timm and transformers are
imported when one of their models is built.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Generator, Tensor, nn

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "models"))
import zoo  # noqa: E402

BATCH, CLASSES, VOCABULARY, LENGTH = 8, 10, 1000, 32
Data = Callable[[int, Generator], tuple[Tensor, Tensor]]
Entry = tuple[str, Callable[[], nn.Module], Data, int, str]  # title, model, data, batch, loss


class Answer(nn.Module):
    """A model that gives one tensor of what another gives."""

    def __init__(self, model: nn.Module, pick: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.model, self.pick = model, pick

    def forward(self, x: Tensor) -> Tensor:
        return self.pick(self.model(x))


def without_dropout(model: nn.Module) -> nn.Module:
    for module in model.modules():
        if "Drop" in type(module).__name__ or type(module).__name__ == "StochasticDepth":
            for name in ("p", "drop_prob"):
                if hasattr(module, name):
                    setattr(module, name, 0.0)
        for name in ("dropout", "attention_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model


def of_the_tests() -> dict[str, Entry]:
    def data_of(case: zoo.Case) -> Data:
        def draw(n: int, g: Generator) -> tuple[Tensor, Tensor]:
            torch.manual_seed(g.initial_seed())
            (x,) = case.inputs(n)
            return x, case.target(n) if case.target else torch.randint(0, case.classes, (n,))

        return draw

    def model_of(case: zoo.Case) -> Callable[[], nn.Module]:
        def pick(answer: Any) -> Tensor:
            if isinstance(answer, dict):
                answer = list(answer.values())
            return answer if isinstance(answer, Tensor) else answer[case.output or 0]

        def build() -> nn.Module:
            model = without_dropout(case.model())
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(not any(name.startswith(part) for part in case.freeze))
            return Answer(model, pick)

        return build

    return {name: (name, model_of(case), data_of(case), BATCH, case.loss)
            for name, case in zoo.CASES.items() if len(case.inputs(2)) == 1}


def images(size: int) -> Data:
    return lambda n, g: (torch.randn(n, 3, size, size, generator=g), torch.randint(CLASSES, (n,), generator=g))


def of_timm() -> dict[str, Entry]:
    def build(name: str, **options: Any) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            import timm

            return without_dropout(timm.create_model(name, num_classes=CLASSES, **options))

        return make

    sized = {"img_size": 64}
    models = {"resnet26t": {}, "repvgg_a0": {}, "ghostnet_050": {}, "edgenext_xx_small": {}, "poolformerv2_s12": {},
              "mobilenetv4_conv_small": {}, "convnextv2_atto": {}, "deit_tiny_patch16_224": sized,
              "mixer_s16_224": sized, "levit_128s": {}, "mobilevit_xxs": {}}
    return {f"timm-{name}": (f"timm: {name}", build(name, **options), images(64 if name != "levit_128s" else 224), BATCH,
                             "cross_entropy") for name, options in models.items()}


def texts(n: int, g: Generator) -> tuple[Tensor, Tensor]:
    return torch.randint(VOCABULARY, (n, LENGTH), generator=g), torch.randint(CLASSES, (n,), generator=g)


def continued(n: int, g: Generator) -> tuple[Tensor, Tensor]:
    text = torch.randint(VOCABULARY, (n, LENGTH + 1), generator=g)
    return text[:, :-1].contiguous(), text[:, 1:].contiguous()


NO_DROPOUT = {name: 0.0 for name in ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout",
                                     "seq_classif_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop", "hidden_dropout",
                                     "classifier_dropout", "dropout_rate", "activation_dropout")}


def of_transformers() -> dict[str, Entry]:
    def build(kind: str, task: str, **options: Any) -> Callable[[], nn.Module]:
        def make() -> nn.Module:
            import transformers

            config = getattr(transformers, f"{kind}Config")(
                **NO_DROPOUT, vocab_size=VOCABULARY, num_labels=CLASSES, use_cache=False, pad_token_id=0, **options)
            model = getattr(transformers, f"{kind}{task}")(config)
            by_class = (lambda logits: logits.transpose(1, 2)) if "LM" in task else (lambda logits: logits)
            return Answer(without_dropout(model), lambda answer: by_class(answer.logits))

        return make

    size = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    gpt = {"n_embd": 64, "n_layer": 2, "n_head": 4}
    classify = {"Bert": size, "Roberta": size, "Electra": size | {"embedding_size": 64}, "MPNet": size,
                "Albert": size | {"embedding_size": 32}, "DistilBert": {"dim": 64, "n_layers": 2, "n_heads": 4,
                                                                          "hidden_dim": 128}}
    follow = {"GPT2LMHeadModel": gpt, "LlamaForCausalLM": size | {"num_key_value_heads": 2},
              "Qwen2ForCausalLM": size | {"num_key_value_heads": 2}, "GPTNeoXForCausalLM": size,
              "OPTForCausalLM": {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 128,
                                 "word_embed_proj_dim": 64}}
    entries: dict[str, Entry] = {}
    for kind, options in classify.items():
        entries[f"hf-{kind.lower()}"] = (f"transformers: {kind}", build(kind, "ForSequenceClassification", **options),
                                         texts, BATCH, "cross_entropy")
    for name, options in follow.items():
        kind = name.removesuffix("ForCausalLM").removesuffix("LMHeadModel")
        entries[f"hf-{kind.lower()}"] = (f"transformers: {kind}", build(kind, name[len(kind):], **options), continued,
                                         BATCH, "cross_entropy")
    return entries


ALL: dict[str, Entry] = {**of_the_tests(), **of_timm(), **of_transformers()}
