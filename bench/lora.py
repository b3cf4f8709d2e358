#!/usr/bin/env python3
"""A sweep of LoRA adapters over one frozen base: hfta-tune, and PEFT's loop, in one process and in two.

    bench/lora.py [--models bert llama] [--width 64] [--trials 16] [--epochs 3] [--rounds 3] [--pytorch-trials 16]
    bench/lora.py --device cuda --models bert vit --width 768 --layers 12 --precision bfloat16

Every trial trains adapters of its own rank and rate on a BERT, Llama or ViT of random weights, and is validated after
each epoch. PEFT trains trial after trial: in one process on all threads, and in as many processes as threads, one thread
each; the faster way counts. hfta-tune's time is that of the whole command: start and reading the model are counted, and in
the first round choosing a way to run, which later ones remember. PEFT's is of training alone: imports, making models and
wrapping them are not counted. Where PEFT runs fewer trials, its time is scaled up, and the output says so. Bytes are the
process's peak above what it holds once LibTorch is loaded: of the study, and of a study of one trial. On a GPU they are the
host's. Both compute in the same precision.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS, CLASSES, IMAGE, PATCH = 1000, 2, 224, 16
RANKS = [2, 4, 8]
STUDY = """\
study: lora
storage: {storage}
seed: 1
method: random
run_cap: {trials}
metric: {{name: val_loss}}
parameters:
  lr: {{distribution: log_uniform_values, min: 1.0e-4, max: 1.0e-2}}
  rank: {{values: {ranks}}}
model:
  file: {folder}/{model}.pt2
  evaluation: {folder}/{model}.eval.pt2
  adapters:
    lora: {{targets: {targets}, rank: "${{rank}}", alpha: 16, dropout: 0.05}}{train}
data: {{train: {folder}/{model}.train.npz, validation: {folder}/{model}.validation.npz, batch_size: {batch}, x: {inputs}}}
train:
  epochs: {epochs}
  loss: {{output: loss}}
  precision: {precision}
  optimizer: {{name: adamw, lr: "${{lr}}"}}
array: {{width: {trials}, threads: {threads}}}
"""
TARGETS = {"bert": ["query", "value"], "llama": ["q_proj", "v_proj"], "vit": ["q_proj", "v_proj"]}
TRAIN = {"bert": ["classifier"], "llama": [], "vit": ["classifier"]}  # trained whole
TASK = {"bert": "SEQ_CLS", "llama": "CAUSAL_LM"}
AUTOCAST = {"float32": None, "tf32": None, "bfloat16": torch.bfloat16}


def make(name: str, arguments: argparse.Namespace) -> torch.nn.Module:
    import transformers
    width = arguments.width
    sizes = {"hidden_size": width, "num_hidden_layers": arguments.layers, "num_attention_heads": width // arguments.head}
    torch.manual_seed(0)
    if name == "vit":
        config = transformers.ViTConfig(intermediate_size=4 * width, num_labels=CLASSES, image_size=IMAGE, patch_size=PATCH, **sizes)
        return transformers.ViTForImageClassification(config)
    sizes |= {"vocab_size": WORDS, "max_position_embeddings": arguments.length}
    if name == "bert":
        config = transformers.BertConfig(intermediate_size=4 * width, num_labels=CLASSES, **sizes)
        return transformers.BertForSequenceClassification(config)
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(intermediate_size=3 * width, num_key_value_heads=width // (2 * arguments.head), **sizes))
    model.config.use_cache = False
    return model


def inputs(name: str, samples: int, length: int) -> dict[str, torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    if name == "vit":
        images = torch.randn(samples, 3, IMAGE, IMAGE, generator=draw)
        return {"pixel_values": images, "labels": torch.randint(CLASSES, (samples,), generator=draw)}
    ids = torch.randint(1, WORDS, (samples, length), generator=draw)
    mask = (torch.arange(length) < torch.randint(length // 2, length + 1, (samples, 1), generator=draw)).long()
    labels = (ids[:, 0] > WORDS // 2).long() if name == "bert" else torch.where(mask == 1, ids, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def write_inputs(name: str, folder: pathlib.Path, arguments: argparse.Namespace) -> None:
    for part, samples in (("train", arguments.samples), ("validation", arguments.samples // 4)):
        np.savez(folder / f"{name}.{part}.npz", **{key: x.numpy() for key, x in inputs(name, samples, arguments.length).items()})
    model, example = make(name, arguments), inputs(name, 4, arguments.length)
    shapes = {key: {0: torch.export.Dim("batch", min=2, max=512)} for key in example}
    for suffix, mode in (("", model.train), (".eval", model.eval)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.export.export(mode(), (), example, dynamic_shapes=shapes, strict=False)
        torch.export.save(program, folder / f"{name}{suffix}.pt2")


def timed(folder: pathlib.Path, arguments: argparse.Namespace, config: pathlib.Path) -> dict:
    """What the command took: seconds, seconds of all cores, and the peak of its memory in bytes."""
    line = [sys.executable, ROOT / "bench" / "timed.py", folder / "log", arguments.binary, config, "--device", arguments.device]
    run = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "HFTA_CACHE": str(folder / "choices")})
    if run.returncode != 0:
        raise RuntimeError((folder / "log").read_text())
    return json.loads(run.stdout)


def ours(name: str, folder: pathlib.Path, arguments: argparse.Namespace, trials: int, count: int) -> dict:
    config = folder / f"{name}.yaml"
    train = f"\n    train: {TRAIN[name]}" if TRAIN[name] else ""
    config.write_text(STUDY.format(storage=folder / f"{name}-{trials}-{count}.db", folder=folder, model=name, trials=trials,
                                   ranks=RANKS, targets=TARGETS[name], train=train, batch=arguments.batch,
                                   inputs=list(inputs(name, 1, arguments.length)), epochs=arguments.epochs, threads=arguments.threads,
                                   precision=arguments.precision))
    return timed(folder, arguments, config)


def loaded_bytes(folder: pathlib.Path, arguments: argparse.Namespace) -> int:
    """What a process of hfta-tune holds once LibTorch is loaded: a study of a net of 20 weights."""
    config = folder / "nothing.yaml"
    np.savez(folder / "nothing.npz", x=np.zeros((8, 4), np.float32), y=np.zeros((8, 4), np.float32))
    (folder / "nothing.db").unlink(missing_ok=True)
    config.write_text(f"storage: {folder}/nothing.db\nrun_cap: 1\nparameters: {{lr: {{min: 0.1, max: 0.2}}}}\n"
                      f"model: {{layers: [{{linear: [4, 4]}}]}}\ndata: {{train: {folder}/nothing.npz, batch_size: 4}}\n"
                      "metric: {name: train_loss}\ntrain: {epochs: 1, loss: mse, optimizer: {name: sgd, lr: \"${lr}\"}}\n")
    return timed(folder, arguments, config)["rss_bytes"]


# ---- PEFT ----


def peft_trial(name: str, data: list[dict], arguments: argparse.Namespace, trial: int) -> float:
    """Seconds of one trial's training and validation."""
    import peft
    config = peft.LoraConfig(r=RANKS[trial % len(RANKS)], lora_alpha=16, lora_dropout=0.05, target_modules=TARGETS[name],
                             modules_to_save=TRAIN[name] or None, task_type=TASK.get(name))
    model = peft.get_peft_model(make(name, arguments), config).to(arguments.device)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, fused=True)
    train, validation = data
    lower = AUTOCAST[arguments.precision]

    def loss_of(batch: dict[str, torch.Tensor]) -> torch.Tensor:
        with torch.autocast(arguments.device, lower, enabled=lower is not None):
            return model(**batch).loss

    begin = time.perf_counter()
    for _ in range(arguments.epochs):
        model.train()
        for rows in torch.randperm(arguments.samples, device=arguments.device).split(arguments.batch):
            optimizer.zero_grad()
            loss_of({key: x[rows] for key, x in train.items()}).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for begins in range(0, arguments.samples // 4, arguments.batch):
                loss_of({key: x[begins:begins + arguments.batch] for key, x in validation.items()}).item()
    return time.perf_counter() - begin


def peft_worker(arguments: argparse.Namespace) -> None:
    """Trains its share of trials when told to: prints that it is ready, reads a line, prints its seconds."""
    torch.set_num_threads(arguments.threads)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = arguments.precision == "tf32"
    (name,) = arguments.models
    data = [{key: x.to(arguments.device) for key, x in inputs(name, samples, arguments.length).items()}
            for samples in (arguments.samples, arguments.samples // 4)]
    short = argparse.Namespace(**{**vars(arguments), "samples": 2 * arguments.batch, "epochs": 1})
    peft_trial(name, data, short, 0)  # PyTorch sets itself up
    print("ready", flush=True)
    sys.stdin.readline()
    print(sum(peft_trial(name, data, arguments, trial) for trial in range(arguments.trials)), flush=True)


def peft_processes(name: str, arguments: argparse.Namespace, processes: int, trials: int) -> float:
    """Seconds until the last of so many processes has trained its share of the trials."""
    line = [sys.executable, __file__, "--worker", "--models", name]
    same = ("epochs", "samples", "batch", "width", "layers", "head", "length", "device", "precision")
    sizes = {"trials": trials // processes, "threads": arguments.threads // processes, **{key: getattr(arguments, key) for key in same}}
    line += [word for key, value in sizes.items() for word in (f"--{key}", str(value))]
    workers = [subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
               for _ in range(processes)]
    for worker in workers:
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return max(float(worker.communicate()[0]) for worker in workers)


# ---- The race ----


def race(name: str, folder: pathlib.Path, arguments: argparse.Namespace) -> None:
    write_inputs(name, folder, arguments)
    fewer = arguments.pytorch_trials or arguments.trials
    scale = arguments.trials / fewer
    fused, alone, one, several = [], [], [], []
    for count in range(arguments.rounds):
        fused.append(ours(name, folder, arguments, arguments.trials, count))
        alone.append(ours(name, folder, arguments, 1, count))
        one.append(scale * peft_processes(name, arguments, 1, fewer))
        several.append(scale * peft_processes(name, arguments, arguments.threads, fewer))
    ours_s, one_s, several_s = (statistics.median(times) for times in ([run["wall_s"] for run in fused], one, several))
    base = loaded_bytes(folder, arguments)
    held = [statistics.median(run["rss_bytes"] for run in runs) - base for runs in (alone, fused)]
    samples = "images" if name == "vit" else f"texts of {arguments.length} words"
    print(f"{name}: width {arguments.width}, {arguments.layers} layers, {arguments.trials} trials x {arguments.epochs} epochs of "
          f"{arguments.samples} + {arguments.samples // 4} {samples}, batch {arguments.batch}, {arguments.device}, {arguments.precision}, "
          f"{arguments.threads} threads; {arguments.rounds} rounds" + ("" if scale == 1 else f", {fewer} trials of PEFT, scaled by {scale:g}"))
    print("| | wall s | times as long |\n|---|---|---|")
    for label, seconds in (("hfta-tune", ours_s), ("PEFT, one process", one_s),
                           (f"PEFT, {arguments.threads} processes", several_s)):
        print(f"| {label} | {seconds:.1f} | {seconds / ours_s:.2f} |")
    print(f"best of PEFT over hfta-tune: {min(one_s, several_s) / ours_s:.2f}; MB above LibTorch's {base / 1e6:.0f}: one trial {held[0] / 1e6:.0f}, "
          f"{arguments.trials} trials {held[1] / 1e6:.0f} ({held[1] / held[0]:.2f}x)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=sorted(TARGETS), default=["bert", "llama"])
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--width", type=int, default=128, help="hidden size of the models")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--head", type=int, default=32, help="size of an attention head")
    parser.add_argument("--length", type=int, default=64, help="words of a text")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=sorted(AUTOCAST), default="float32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="all contestants in turn; the median counts")
    parser.add_argument("--pytorch-trials", type=int, default=0, help="0: as many as trials")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/bin/hfta-tune")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        peft_worker(arguments)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.models:
            race(name, pathlib.Path(folder), arguments)


if __name__ == "__main__":
    main()
