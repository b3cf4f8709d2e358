#!/usr/bin/env python3
"""Writes signals.npz: 1,200 noisy signals of 64 samples, each a sine, a square or a sawtooth wave.

Put your own arrays in their place. What hfta-tune wants is one array per input, samples first, and one of targets:
integers from 0 for classes, floating-point numbers for a regression.
"""
import pathlib

import numpy as np

SAMPLES, LENGTH = 1200, 64
random = np.random.default_rng(1)

labels = random.integers(0, 3, SAMPLES)  # int64 [1200]
phase = random.uniform(0, 1, (SAMPLES, 1)) + random.uniform(1, 3, (SAMPLES, 1)) * np.linspace(0, 1, LENGTH)
waves = np.stack([np.sin(2 * np.pi * phase), np.sign(np.sin(2 * np.pi * phase)), 2 * (phase % 1) - 1])
signals = waves[labels, np.arange(SAMPLES)] + random.normal(0, 0.6, (SAMPLES, LENGTH))

path = pathlib.Path(__file__).with_name("signals.npz")
np.savez(path, signals=signals[:, None, :].astype(np.float32), labels=labels)  # signals: [1200, 1, 64], one channel
print(f"wrote {path}")
