"""Small real sources and settings that train in a second."""

from functools import cache

import numpy as np
import torch

from propos.augment import RandomViews
from propos.config import Config
from propos.data import open_source
from propos.data.arrays import ArraySource
from propos.methods import complete_sections, find_method, stages_of
from propos.methods.seeds import generator
from propos.runner.recipes import build_recipe, sections_of
from propos.runs import RunFolder
from propos.training import Silent, prepare, stage_epochs, train
from propos.training.choose_k import estep_due

CPU = torch.device("cpu")
# Own settings of whichever method has them, unless they are off by default.
OWN = {
    "psl_start": 1,
    "contrast_weight": 0.0,  # ProPos as in the paper
    "pull_weight": 0.0,
    "clusters": (8, 16),
    "queue_size": 96,
    "confidence": 0.1,  # so few epochs make no head more confident
}
SHARED = {
    "network.hidden": 32,
    "network.dimension": 16,
    "train.batch_size": 64,
    "train.epochs": 3,
    "train.warmup": 1,
    "estep.restarts": 2,
}


def quick(method="propos", **settings):
    """Return settings for a run of a few seconds by dotted key; in the given ones dots are double underscores.

    A name without a section is the method's own setting, unless all methods share one of this name.
    """
    own = find_method(method).Settings.model_fields.keys() - Config.model_fields.keys()
    given = {f"{method}.{key}" if key in own else dotted(key): value for key, value in settings.items()}
    usual = {
        f"{section}.{key}": OWN[key]
        for section in sections_of(method, given)
        for key, field in find_method(section).Settings.model_fields.items()
        if key in OWN and not (key == "queue_size" and not field.default)
    }
    return {**SHARED, **usual, **given}


def dotted(keyword):
    """Return the key that a keyword stands for: cc_psl__psl_weight is cc-psl.psl_weight."""
    section, dots, setting = keyword.partition("__")
    return f"{section.replace('_', '-')}.{setting}" if dots else keyword


QUICK = quick()


def digits(count=200):
    """Return the first few of scikit-learn's digits as a source."""
    images, labels, black, white = _all_digits()
    return ArraySource(images[:count].copy(), labels[:count].copy(), "digits", black, white)


@cache
def _all_digits():
    source = open_source("digits")
    return source.images, source.labels, source.black, source.white


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
    """Return complete settings for a run of a few seconds, given as for `quick`."""
    method = settings.pop("method", "propos")
    changes = quick(method, **settings)
    recipe = build_recipe("digits", method, changes.get(f"{method}.pretext"))
    return prepare(complete_sections(recipe.with_settings(changes)), source or digits())


def quick_train(source=None, run=None, progress=None, stop=lambda: False, **settings):
    """Train for a second or two."""
    source = source or digits()
    return train(quick_config(source, **settings), source, CPU, progress or Silent(), run, stop)


def two_views(learner, positions, when):
    """Return two random views of digits as a step draws them."""
    pixels = learner.config.pixels
    views = RandomViews(learner.config.views, pixels.mean, pixels.std)
    images = torch.from_numpy(digits().batch(np.asarray(positions)))
    return views(images, generator(learner.seed, "views", *when))


def esteps(config):
    """Return the epochs that an E-step opens."""
    stages = stages_of(config)
    spans = zip(stages, stage_epochs(stages, config.train.epochs), strict=True)
    return [epoch for stage, span in spans for epoch in span if estep_due(config, stage, epoch - span.start, epoch)]


def same_weights(first, second):
    """Return whether two networks' weights and buffers are the same to the bit."""
    ours, theirs = first.state_dict(), second.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(value, theirs[name]) for name, value in ours.items())


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
