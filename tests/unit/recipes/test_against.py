"""Recipes against the paper: no setting differs from it without a reason written beside it."""

import pytest

from propos.config import Config
from propos.methods import METHODS
from propos.recipes import PAPER, RECIPES, against_paper, build_recipe
from propos.recipes.against import (
    DIFFERENCES,
    OF_METHODS,
    OF_METHODS_DIFFERENCES,
    ROWS,
    SAID,
    UNSAID,
    Row,
    Said,
)


def rows_of(name, method="propos"):
    return {row.key: row for row in against_paper(name, build_recipe(name, method))}


@pytest.mark.parametrize("name", RECIPES)
def test_no_setting_differs_from_the_paper_without_a_reason(name):
    without = [row.key for row in rows_of(name).values() if row.differs and not row.note]
    assert not without


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["cifar-10", "stl-10", "imagenet-200"])
def test_nor_does_one_that_a_method_changes(name, method):
    without = [row.key for row in rows_of(name, method).values() if row.differs and not row.note]
    assert not without


@pytest.mark.parametrize("name", DIFFERENCES)
def test_no_reason_is_left_for_what_no_longer_differs(name):
    rows = rows_of(name)
    assert [key for key in DIFFERENCES[name] if not rows[key].differs] == []


def test_a_difference_is_noticed():
    changed = build_recipe("cifar-10").with_settings({"train.warmup": 15})
    (row,) = [row for row in against_paper("cifar-10", changed) if row.differs]
    assert row == Row("train.warmup", 15, Said(50, "“with 50 epochs for learning rate warmup”"), None)


def test_every_paper_recipe_has_a_row_and_every_key_exists():
    assert set(ROWS) == set(PAPER)
    keys = set(Config().flat())
    for table in (SAID, UNSAID, *ROWS.values(), *OF_METHODS.values(), *OF_METHODS_DIFFERENCES.values()):
        assert set(table) <= keys


def test_the_papers_size_and_backbone_are_said_of_every_row():
    """But that table 8's size is nowhere given; SCAN's 224 stands for it."""
    for name in PAPER:
        rows = rows_of(name)
        assert rows["network.backbone"].said is not None
        assert (rows["views.size"].said is None) is (name in {"imagenet-50", "imagenet-100", "imagenet-200"})
