"""The networks and stages of a recipe, for tests of its values."""

from torch import nn

from propos.methods import build_method, stages_of
from propos.runner.recipes import build_recipe
from propos.training import stage_epochs


def of_system(name, clusters=10):
    """Return the settings of another system's recipe."""
    return build_recipe(name).with_settings({"clusters": clusters})


def built(config):
    """Return a recipe's networks, but for the width of the backbone."""
    return build_method(config.with_settings({"network.width": 1 / 16}), channels=3)


def widths(module):
    """Return the numbers of outputs of a module's linear layers."""
    return tuple(layer.out_features for layer in module.modules() if isinstance(layer, nn.Linear))


def lengths(config):
    """Return the epochs of each stage."""
    return [len(span) for span in stage_epochs(stages_of(config), config.train.epochs)]
