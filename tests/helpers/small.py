"""Small real sources and settings that train in a second."""

import numpy as np
import torch

from propos.data import open_source
from propos.data.arrays import ArraySource
from propos.methods import build_method
from propos.recipes import build_recipe
from propos.runs import RunFolder
from propos.training import Silent, prepare, train
from propos.training.choosing import estep_due

CPU = torch.device("cpu")
QUICK = {
    "network.hidden": 32,
    "network.dimension": 16,
    "train.batch_size": 64,
    "train.epochs": 3,
    "train.warmup": 1,
    "psl.start": 1,
    "estep.restarts": 2,
    "pcl.clusters": (8, 16),
    "contrast.weight": 0.0,  # ProPos as in the paper
    "pull.weight": 0.0,
    "confident.above": 0.1,  # so few epochs make no head surer
}


def digits(count=200):
    """Return the first few of scikit-learn's digits as a source."""
    source = open_source("digits")
    return ArraySource(source.images[:count], source.labels[:count], "digits", source.black, source.white)


def some_digits(positions):
    """Return the digits at these places, of the first 200."""
    everything = digits(200)
    return ArraySource(everything.images[positions], everything.labels[positions], "some", 0.0, 16.0)


def finished_run(folder, source):
    """Train a quick run into a new folder and return where it is."""
    run = RunFolder.create(folder, {"status": "finished"}, quick_config(source))
    quick_train(source).write(run)
    return run.path


def quick_config(source=None, **settings):
    """Return complete settings for a run of a few seconds; dots in keys are written as double underscores."""
    dotted = {key.replace("__", "."): value for key, value in settings.items()}
    recipe = build_recipe("digits", dotted.get("method", "propos"))
    queue = {"queue.size": 96} if recipe.queue.size else {}
    return prepare(recipe.with_settings({**QUICK, **queue, **dotted}), source or digits())


def quick_train(source=None, run=None, progress=None, stop=lambda: False, **settings):
    """Train for a second or two."""
    source = source or digits()
    return train(quick_config(source, **settings), source, CPU, progress or Silent(), run, stop)


def esteps(config):
    """Return the epochs that an E-step opens."""
    method = build_method(config)
    stages = zip(method.stages, method.spans(config.train.epochs), strict=True)
    return [epoch for stage, span in stages for epoch in span if estep_due(config, stage, epoch - span.start, epoch)]


def same_weights(first, second):
    """Return whether two networks' weights and buffers are the same to the bit."""
    pairs = zip(first.state_dict().items(), second.state_dict().items(), strict=True)
    return all(a == b and torch.equal(x, y) for (a, x), (b, y) in pairs)


def without_times(history):
    """Return a history without what no two runs share."""
    return [{key: value for key, value in record.items() if key != "seconds"} for record in history]


def save_digits(path, count=200):
    """Write the first few digits, with labels, as an .npz file."""
    source = digits(count)
    np.savez(path, images=source.images[..., 0], labels=source.labels)
    return path


def as_flags(settings):
    """Return settings as the command line takes them."""
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    return [part for key, value in plain.items() for part in ("--set", f"{key}={value}")]
