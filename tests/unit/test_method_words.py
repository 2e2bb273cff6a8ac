"""The words for what ran, on the run's first line and its page."""

from __future__ import annotations

import pytest

from propos.config import Config, method_in_words, method_names
from propos.runner.recipes import build_recipe


@pytest.mark.parametrize(
    ("recipe", "method", "words"),
    [
        ("pretrained", None, "k-means on EfficientNet-Lite0 features"),
        ("pretrained", "propos", "ProPos on EfficientNet-Lite0 features"),
        ("pretrained", "temi", "TEMI on EfficientNet-Lite0 features"),
        ("digits", None, "ProPos + contrast + pull"),
        ("digits", "propos-no-psl", "ProPos without PSL"),
        ("digits", "scan", "SCAN on SimCLR"),
        ("digits", "kmeans-pixels", "k-means on pixels"),
        ("cifar-10", None, "ProPos"),
        ("cifar-10", "byol-pcl", "BYOL + PCL"),
    ],
)
def test_recipes_say_what_they_run(recipe: str, method: str | None, words: str) -> None:
    """Losses that the paper does not have, the pretext and a pretrained network are named."""
    assert method_in_words(build_recipe(recipe, method)) == words


def test_a_method_on_pretrained_features_names_them_once() -> None:
    config = Config().with_settings(
        {"method": "dcboost", "dcboost.pretext": "kmeans-features", "start.network": "efficientnet-lite0"}
    )
    assert method_in_words(config) == "DCBoost on EfficientNet-Lite0 features"


@pytest.mark.parametrize(
    ("learns", "words"),
    [("last", "ProPos, training EfficientNet-Lite2's last stage"), ("all", "ProPos, training EfficientNet-Lite2")],
)
def test_a_pretrained_network_that_is_trained_is_named(learns: str, words: str) -> None:
    config = Config().with_settings({"start.network": "efficientnet-lite2", "start.learns": learns})
    assert method_in_words(config) == words


def test_every_method_has_words() -> None:
    words = [method_in_words(Config().with_settings({"method": name})) for name in method_names()]
    assert len(set(words)) == len(words)
