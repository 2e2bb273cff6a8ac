"""The EM loop and what it needs."""

from propos.training.continuation import WarmStart, continuation_config, fitting_channels, start_from
from propos.training.estimate import estimate_seconds
from propos.training.learner import choose_device
from propos.training.loop import train
from propos.training.model import Fitted, Model, Prediction
from propos.training.numerics import default_precision
from propos.training.prepare import prepare
from propos.training.progress import Progress, Silent
from propos.training.stages import clusters_needed, late_losses, stage_epochs
from propos.training.tensorboard import check_tensorboard

__all__ = [
    "Fitted",
    "Model",
    "Prediction",
    "Progress",
    "Silent",
    "WarmStart",
    "check_tensorboard",
    "choose_device",
    "clusters_needed",
    "continuation_config",
    "default_precision",
    "estimate_seconds",
    "fitting_channels",
    "late_losses",
    "prepare",
    "stage_epochs",
    "start_from",
    "train",
]
