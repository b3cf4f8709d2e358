"""Tunes adapters with the program, and takes the best ones back to PEFT.

    export_check.py HFTA_TUNE [--short | --only NAME ...]

Of each model of adapted_models.py, with adapters of the config and wrapped by PEFT (DoRA for one of them): the exported
folder loads without missing or unexpected keys, the merged weights load into the plain model, and either gives the
perplexity that the study has recorded, to 1e-6 of it: of the whole set at once, while the study evaluates it in batches
of different numbers of words, the last one short. Ranks differ within a study. CI runs `--short`, four models.
"""

import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import warnings

import torch
from safetensors.torch import load_file, save_file

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    import peft
    import transformers
    from adapted_models import CASES, Case
except ImportError as missing:
    print(f"skipped, the package {missing.name} is not installed")
    sys.exit(77)

transformers.logging.set_verbosity_error()
SHORT = ["bert", "gpt2", "llama", "vit"]
DORA = ["bert", "gpt2"]
BATCH, TRAINED, VALIDATED = 8, 24, 21
STUDY = """
study: adapters
method: grid
metric: {{name: val_perplexity, goal: minimize}}
parameters:
  r: {{values: {ranks}}}
model: {model}
data: {{train: train.safetensors, validation: validation.safetensors, x: {inputs}, batch_size: {batch}}}
train:
  epochs: 2
  loss: {{output: loss}}
  metrics: {{perplexity: exp(loss)}}
  clip_norm: 1.0
  optimizer: {{name: adamw, lr: 0.02, weight_decay: 0.01, groups: [{{params: "*lora_B*", weight_decay: 0}}]}}
"""


def run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def export(model: torch.nn.Module, inputs: dict, file: pathlib.Path) -> None:
    batch = torch.export.Dim("batch", min=2, max=512)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, (), {name: x[:4] for name, x in inputs.items()},
                                      dynamic_shapes={name: {0: batch} for name in inputs}, strict=False)
        torch.export.save(program, file)


def wrapped(case: Case) -> torch.nn.Module:
    config = peft.LoraConfig(r=4, lora_alpha=4, target_modules=[t for t in case.targets if t != "embed_tokens"],
                             modules_to_save=list(case.train) or None, task_type=case.task, use_dora=case.name in DORA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peft.get_peft_model(case.model(), config)


def loss_of(model: torch.nn.Module, inputs: dict) -> float:
    with torch.no_grad():
        return model.eval()(**inputs).loss.item()


def loaded(case: Case, folder: pathlib.Path) -> tuple[torch.nn.Module, list[str]]:
    """The plain model with the adapter of the folder, and the keys that were missing or not expected."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = peft.PeftModel.from_pretrained(case.model(), str(folder))
    keys = [str(warning.message) for warning in said if "keys" in str(warning.message)]
    result = peft.set_peft_model_state_dict(model, load_file(folder / "adapter_model.safetensors"))
    keys += list(result.unexpected_keys) + [key for key in result.missing_keys if "lora_" in key or "modules_to_save" in key]
    return model, keys


def check_study(program: str, case: Case, folder: pathlib.Path, model: str, ranks: list, validation: dict, way: str) -> list[str]:
    failures = []
    config = folder / f"{way}.yaml"
    config.write_text(STUDY.format(model=model, ranks=ranks, inputs=f"[{', '.join(validation)}]", batch=BATCH))
    store = str(folder / f"{way}.db")
    run(program, str(config), "--set", f"storage={store}")
    report = json.loads(run(program, "report", "adapters", "--storage", store, "--format", "json"))
    assert report["counts"] == {"COMPLETE": len(ranks)}, report["counts"]
    for trial in report["trials"]:
        wanted, losses = trial["value"], {}
        number = ["--trial", str(trial["number"])]
        place = folder / f"{way}-{trial['number']}"
        run(program, "export", "adapters", "--storage", store, "--format", "peft", "--output", str(place), *number)
        adapter, keys = loaded(case, place)
        if keys:
            failures.append(f"{case.name}, {way}: keys {keys}")
        losses["peft"] = loss_of(adapter, validation)
        merged = str(place) + ".safetensors"
        run(program, "export", "adapters", "--storage", store, "--format", "merged", "--output", merged, *number)
        plain = case.model()
        plain.load_state_dict(load_file(merged), strict=True)
        losses["merged"] = loss_of(plain, validation)
        for kind, loss in losses.items():
            off = abs(math.exp(loss) / wanted - 1)
            print(f"{case.name:12s} {way:6s} trial {trial['number']} {kind:7s} {off:.1e}", flush=True)
            if not off <= 1e-6:
                failures.append(f"{case.name}, {way}, trial {trial['number']}, {kind}: perplexity {math.exp(loss)}, in the study {wanted}")
    return failures


def check(program: str, case: Case) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="hfta-adapters-") as name:
        folder = pathlib.Path(name)
        inputs = {key: x.contiguous() for key, x in case.inputs(TRAINED + VALIDATED).items()}
        validation = {key: x[TRAINED:].contiguous() for key, x in inputs.items()}
        save_file({key: x[:TRAINED].contiguous() for key, x in inputs.items()}, folder / "train.safetensors")
        save_file(validation, folder / "validation.safetensors")
        export(case.model(), inputs, folder / "base.pt2")
        lora = f"{{targets: [{', '.join(case.targets)}], rank: \"${{r}}\", alpha: 8}}"
        own = f"{{file: base.pt2, adapters: {{lora: {lora}, train: [{', '.join(case.train)}]}}}}".replace(", train: []", "")
        failures = check_study(program, case, folder, own, [2, 4, 8], validation, "own")
        model = wrapped(case)
        export(model if case.task else model.base_model.model, inputs, folder / "peft.pt2")
        scales = "{file: peft.pt2, init: fresh, bind: {" + ", ".join(
            f"\"*.{target}.other\": \"${{r}}\"" for target in case.targets if target != "embed_tokens") + "}}"
        if case.name in DORA:
            scales = "{file: peft.pt2, init: fresh}"
        return failures + check_study(program, case, folder, scales, [1, 2], validation, "peft")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wanted = arguments.only or (SHORT if arguments.short else [case.name for case in CASES])
    failures = [failure for case in CASES if case.name in wanted for failure in check(arguments.program, case)]
    print("\n".join(failures) or f"{len(wanted)} models: adapters and merged weights are those of the study")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
