"""Recipes compared with the paper: no setting differs from it without a reason."""

import pytest

from propos.config import Config
from propos.methods import complete_sections, find_method, method_names
from propos.runner.recipes import PAPER, RECIPES, build_recipe, paper_diff
from propos.runner.recipes.paper_diff import (
    DIFFERENCES,
    ELSEWHERE,
    OF_METHODS,
    PERSONAL,
    ROWS,
    STATED,
    UNRELATED,
    Reference,
    Row,
)


def rows_of(name, method="propos"):
    return {row.key: row for row in paper_diff(name, build_recipe(name, method))}


@pytest.mark.parametrize("name", RECIPES)
def test_no_setting_differs_from_the_paper_without_a_reason(name):
    without = [row.key for row in rows_of(name).values() if row.differs and not row.note]
    assert not without


@pytest.mark.parametrize("method", method_names())
def test_nor_does_one_that_a_method_changes(method):
    for name in ("cifar-10", "stl-10", "imagenet-200", "imagenet-1k-released"):
        assert [row.key for row in rows_of(name, method).values() if row.differs and not row.note] == [], name


@pytest.mark.parametrize("name", DIFFERENCES)
def test_no_reason_is_left_for_what_no_longer_differs(name):
    rows = rows_of(name)
    assert [key for key in DIFFERENCES[name] if not rows[key].differs] == []


def test_a_difference_is_noticed():
    changed = build_recipe("cifar-10").with_settings({"train.warmup": 15})
    (row,) = [row for row in paper_diff("cifar-10", changed) if row.differs]
    assert row == Row("train.warmup", 15, Reference(50, "“with 50 epochs for learning rate warmup”"), None)


# Another value of each kind; no recipe has one of these.
OTHERS = {bool: lambda value: not value, int: lambda value: value + 3, float: lambda value: value / 2 + 0.07}
WORDS = {
    "views.keep": ("squares", "shapes"),
    "views.plain": ("whole", "centre"),
    "views.colours": ("at-once", "in-turn"),
    "start.learns": ("nothing", "last"),
    "start.norms": ("kept", "learnt"),
    "network.backbone": ("resnet18", "resnet-small"),
    "network.stem": ("small", "imagenet"),
    "network.momentum_schedule": ("constant", "cosine"),
    "estep.embeddings": ("fresh", "streamed"),
    "propos.prototypes": ("scattered", "aligned"),
    "train.optimiser": ("sgd", "adam"),
    "train.schedule": ("cosine", "constant"),
}
OTHER_TUPLES = {"views.crop_scale": (0.3, 0.9), "views.crop_ratio": (0.9, 1.1)}


def another(key, value):
    """Return another value that a setting may have."""
    if key in WORDS:
        return next(word for word in WORDS[key] if word != value)
    if isinstance(value, tuple):
        return OTHER_TUPLES.get(key, (0.3, 0.3))
    if key == "views.turns":
        return 2
    if value is None:
        return 7 if key == "propos.psl_start" else "x"
    return OTHERS[type(value)](value)


@pytest.mark.parametrize("name", ["cifar-10", "stl-10", "imagenet-50", "imagenet-1k-released"])
def test_any_setting_that_comes_to_differ_is_noticed_until_a_reason_is_given(name):
    """But those that change only how a run is computed, and those that differ already, with their reasons."""
    recipe = build_recipe(name)
    noticed = set()
    for key, row in rows_of(name).items():
        if key in UNRELATED or row.differs:
            continue
        freed = {"views.keep": "squares"} if key == "views.rotation" else {}  # what keeps its shape is not turned
        changed = recipe.with_settings({**freed, key: another(key, row.ours)})
        (found,) = [each for each in paper_diff(name, changed) if each.key == key]
        assert found.differs, key
        noticed |= {key} if not found.note else set()
    every = {key for key in complete_sections(Config()).flat() if not key.startswith(PERSONAL)}
    assert noticed == every - set(UNRELATED) - set(DIFFERENCES.get(name, ()))


def test_every_paper_recipe_has_a_row_and_every_key_exists():
    assert set(ROWS) == set(PAPER)
    own = {f"{name}.{key}" for name in method_names() for key in find_method(name).Settings.model_fields}
    for table in (STATED, ELSEWHERE, UNRELATED, *ROWS.values(), *OF_METHODS.values(), *DIFFERENCES.values()):
        assert set(table) <= {*Config().flat(), *own}


@pytest.mark.parametrize("name", PAPER)
def test_something_is_said_of_every_setting(name):
    assert [row.key for row in rows_of(name).values() if row.reference is None and not row.note] == []


def test_the_papers_size_and_backbone_are_said_of_every_row():
    """But that table 8's size is nowhere given; SCAN's 224 stands for it."""
    for name in PAPER:
        rows = rows_of(name)
        assert rows["network.backbone"].reference.paper
        assert (not rows["views.size"].reference.paper) is (name in {"imagenet-50", "imagenet-100", "imagenet-200"})
