"""Tunes the hyperparameters of PyTorch modules: many trials train as one fused model, in the program hfta-tune."""
from .errors import (BusyError, ConfigError, DeviceError, ExportError, HftaError, InternalError, NoCompleteTrial,
                     ProgramNotFound, StoppedError, StorageError)
from .exporting import Exported, export
from .program import find_program
from .space import (Distribution, choice, grid, int_, inv_log_uniform, log_normal, log_uniform, normal, uniform)
from .study import Configuration, Study, Trial, load_study
from .tuning import plan, tune

__all__ = [
    "BusyError", "ConfigError", "Configuration", "DeviceError", "Distribution", "ExportError", "Exported", "HftaError", "InternalError",
    "NoCompleteTrial", "ProgramNotFound", "StoppedError", "StorageError", "Study", "Trial", "choice", "export",
    "find_program", "grid", "int_", "inv_log_uniform", "load_study", "log_normal", "log_uniform", "normal", "plan", "tune",
    "uniform",
]
