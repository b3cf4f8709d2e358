"""Writes random outputs and targets with what scikit-learn makes of them: scikit_learn_cases.json, which a test reads.

    scikit_learn_cases.py                            writes the file beside this one again
    scikit_learn_cases.py --cases 2000 --seed 7 FILE  many more cases, for one comparison:
                                                     HFTA_METRIC_CASES=FILE array_test 'metrics are scikit-learn*'

Wants numpy and scikit-learn, which the tests themselves do without. What scikit-learn refuses or warns of is written as
docs/metrics.md says.
"""

import argparse
import json
import pathlib
import warnings

import numpy as np
import sklearn
from sklearn import metrics as sk

AVERAGES = {"": "macro", "_micro": "micro", "_weighted": "weighted"}
SHARES = {"precision": sk.precision_score, "recall": sk.recall_score, "f1": sk.f1_score, "mean_iou": sk.jaccard_score}
AREAS = {"auroc": sk.roc_auc_score, "average_precision": sk.average_precision_score}
KS = (1, 2, 3)


def areas(yes: np.ndarray, scores: np.ndarray) -> dict:
    """Of columns [M, K]. scikit-learn has none of one class; such columns are left out of the means."""
    found = {}
    for name, area in AREAS.items():
        defined = [column for column in range(yes.shape[1])
                   if yes[:, column].any() and (name == "average_precision" or not yes[:, column].all())]
        each = {column: area(yes[:, column], scores[:, column]) for column in defined}
        weights = [yes[:, column].sum() for column in defined]
        if len(defined) == yes.shape[1] > 1:
            found[name] = area(yes, scores, average="macro")
            found[f"{name}_weighted"] = area(yes, scores, average="weighted")
        else:
            found[name] = np.mean(list(each.values())) if defined else np.nan
            found[f"{name}_weighted"] = np.average(list(each.values()), weights=weights) if defined else np.nan
        for column in range(yes.shape[1]):
            found[f"{name}_{column}"] = each.get(column, np.nan)
    return found


def matrix(target: np.ndarray, predicted: np.ndarray, classes: int) -> dict:
    counts = sk.confusion_matrix(target, predicted, labels=range(classes))
    return {f"confusion_{i}_{j}": counts[i, j] for i in range(classes) for j in range(classes)}


def of_classes(scores: np.ndarray, target: np.ndarray) -> dict:
    """scores [M, C], target [M]."""
    classes, predicted = scores.shape[1], scores.argmax(1)
    shifted = np.exp(scores - scores.max(1, keepdims=True))
    softmax = shifted / shifted.sum(1, keepdims=True)
    found = {"accuracy": sk.accuracy_score(target, predicted),
             "balanced_accuracy": sk.balanced_accuracy_score(target, predicted),
             "perplexity": np.exp(sk.log_loss(target, softmax, labels=range(classes)))}
    if all(len(set(row)) == classes for row in scores) and classes > 2:  # of equal scores scikit-learn takes the last
        for k in KS:
            found[f"top_{k}"] = sk.top_k_accuracy_score(target, scores, k=k, labels=range(classes))
    for name, share in SHARES.items():
        for suffix, average in AVERAGES.items():
            found[name + suffix] = share(target, predicted, average=average, zero_division=0)
        each = share(target, predicted, labels=range(classes), average=None, zero_division=0)
        found.update({f"{name}_{k}": value for k, value in enumerate(each)})
    yes = np.eye(classes, dtype=int)[target]
    found.update(areas(yes, softmax) | matrix(target, predicted, classes))
    if yes.any(0).all() and classes > 2:
        found["auroc"] = sk.roc_auc_score(target, softmax, multi_class="ovr", average="macro")
    return found


def of_columns(scores: np.ndarray, yes: np.ndarray, threshold: float) -> dict:
    """scores, yes [M, K]."""
    predicted = (scores > threshold).astype(int)
    found = {"accuracy": sk.accuracy_score(yes.ravel(), predicted.ravel())}
    for name, share in SHARES.items():
        if yes.shape[1] == 1:
            found[name] = found[f"{name}_0"] = share(yes.ravel(), predicted.ravel(), average="binary", zero_division=0)
            continue
        for suffix, average in AVERAGES.items():
            found[name + suffix] = share(yes, predicted, average=average, zero_division=0)
        each = share(yes, predicted, average=None, zero_division=0)
        found.update({f"{name}_{k}": value for k, value in enumerate(each)})
    if yes.shape[1] == 1:
        found["balanced_accuracy"] = sk.balanced_accuracy_score(yes.ravel(), predicted.ravel())
    return found | areas(yes, scores) | matrix(yes.ravel(), predicted.ravel(), 2)


def of_values(output: np.ndarray, target: np.ndarray) -> dict:
    """[N, K]"""
    return {"mse": sk.mean_squared_error(target, output), "rmse": sk.root_mean_squared_error(target, output),
            "mae": sk.mean_absolute_error(target, output), "mape": sk.mean_absolute_percentage_error(target, output),
            "r2": sk.r2_score(target, output)}


def class_case(draw: np.random.Generator) -> dict:
    classes, samples = int(draw.integers(2, 6)), int(draw.integers(2, 25))
    places = [(), (3,), (2, 2)][draw.choice(3, p=[0.6, 0.2, 0.2])]
    output = draw.normal(size=(samples, classes, *places)).round(6) * draw.choice([1, 3])
    ties = draw.choice(["none", "samples", "classes"])
    if ties == "samples":
        output = output[draw.integers(0, samples // 2 + 1, size=samples)]
    elif ties == "classes":
        output = output.round()
    known = draw.choice(classes, size=draw.integers(1, classes + 1), replace=False)
    target = draw.choice(known if draw.random() < 0.5 else classes, size=(samples, *places))
    ignore = int(draw.choice([-100, 255, 0])) if draw.random() < 0.4 else None
    if ignore is not None:
        target = np.where(draw.random(target.shape) < 0.3, ignore, target)
        target.flat[0] = classes - 1
    scores, labels = np.moveaxis(output, 1, -1).reshape(-1, classes), target.ravel()
    counts = labels != ignore
    expected = of_classes(scores[counts], labels[counts])
    if ties == "classes":  # rows of the same scores in another order: whether their softmax is equal depends on rounding
        expected = {name: value for name, value in expected.items() if not name.startswith(tuple(AREAS))}
    return {"kind": "class scores", "output": output.tolist(), "target": target.tolist(), "ignore_index": ignore,
            "expected": expected}


def column_case(draw: np.random.Generator) -> dict:
    kind, threshold, no = [("logits", 0, 0), ("probabilities", 0.5, 0), ("margins", 0, -1)][draw.integers(3)]
    samples = int(draw.integers(2, 25))
    shape = [(samples,), (samples, 1), (samples, 3), (samples, 2, 3)][draw.integers(4)]
    output = draw.normal(size=shape)
    output = (1 / (1 + np.exp(-output)) if kind == "probabilities" else output).round(draw.choice([1, 3]))
    yes = (draw.random(size=shape) < draw.choice([0, 0.1, 0.5, 0.9, 1], p=[0.05, 0.2, 0.5, 0.2, 0.05])).astype(int)
    columns = [t.reshape(-1, 1) if t.ndim == 1 else np.moveaxis(t, 1, -1).reshape(-1, shape[1]) for t in (output, yes)]
    target = np.where(yes, 1, no)
    if shape[1:] == (1,) and draw.random() < 0.5:
        target = target.ravel()
    return {"kind": kind, "output": output.tolist(), "target": target.tolist(),
            "expected": of_columns(*columns, threshold)}


def value_case(draw: np.random.Generator) -> dict:
    samples = int(draw.integers(2, 25))
    shape = [(samples,), (samples, 1), (samples, 3), (samples, 2, 2)][draw.integers(4)]
    target = (draw.normal(size=shape) * draw.choice([0.01, 1, 100]) + draw.choice([0, 0, 1000])).round(3)
    output = (target + draw.normal(size=shape)).round(3)
    if draw.random() < 0.2:
        target[:] = 0.5  # whose mean does not round: scikit-learn has no other guard
        output = np.where(draw.random() < 0.5, target, output)
    return {"kind": "values", "output": output.tolist(), "target": target.tolist(),
            "expected": of_values(output.reshape(samples, -1), target.reshape(samples, -1))}


def plain(value):
    """For json: NaN as null."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, (np.floating, np.integer, float)):
        return None if np.isnan(value) else value.item() if hasattr(value, "item") else value
    return value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("file", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).with_name("scikit_learn_cases.json"))
    given = parser.parse_args()
    draw, cases = np.random.default_rng(given.seed), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(given.cases):
            cases.append(plain((class_case, column_case, value_case)[i % 5 % 3](draw)))
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    given.file.write_text(f'{{"scikit-learn": "{sklearn.__version__}", "seed": {given.seed}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
