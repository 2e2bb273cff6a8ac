"""The EM loop and what it needs."""

from propos.training.estimate import estimate_seconds
from propos.training.learner import choose_device
from propos.training.loop import train
from propos.training.model import Fitted, Model, Prediction
from propos.training.prepare import prepare
from propos.training.progress import Progress, Silent, Warnings

__all__ = [
    "Fitted",
    "Model",
    "Prediction",
    "Progress",
    "Silent",
    "Warnings",
    "choose_device",
    "estimate_seconds",
    "prepare",
    "train",
]
