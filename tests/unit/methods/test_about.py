"""What the package says of its methods, and which parts of it may know them by name."""

import ast
from pathlib import Path

import pytest

import propos
from helpers.command import command
from propos.methods import describe, describe_method, find_method, method_names
from propos.runner.recipes import build_recipe


def test_every_method_says_where_it_is_from(capsys):
    lines = command(capsys, "methods").out.splitlines()
    assert len(lines) == 2 * len(method_names())
    for name, first, second in zip(method_names(), lines[::2], lines[1::2], strict=True):
        kind = find_method(name)
        assert first.split()[0] == name
        assert first.endswith(describe(name))
        assert (str(kind.year) in first) or kind.year is None
        assert kind.reference
        assert kind.reference in second
        assert kind.verified in second
        assert ("trains a network" if kind.trains else "trains nothing") in second


@pytest.mark.parametrize(
    ("recipe", "settings", "words"),
    [
        ("small-grey", {}, "ProPos + contrast + pull"),
        ("cifar-10", {}, "ProPos"),
        ("digits", {"method": "propos-no-psl"}, "ProPos without PSL"),
        ("digits", {"method": "scan"}, "SCAN (thresholds per cluster) on SimCLR"),
        ("cifar-10", {"method": "scan"}, "SCAN on SimCLR"),
        ("digits", {"method": "kmeans-pixels"}, "k-means on pixels, nothing is trained"),
        ("pretrained", {}, "k-means on EfficientNet-Lite0 features, nothing is trained"),
        ("pretrained", {"method": "propos"}, "ProPos on EfficientNet-Lite0 features"),
        ("pretrained", {"method": "temi"}, "TEMI on EfficientNet-Lite0 features"),
        (
            "pretrained",
            {"method": "propos", "start.learns": "all"},
            "ProPos, training EfficientNet-Lite0",
        ),
    ],
)
def test_a_method_is_named_with_the_losses_added_and_what_it_builds_on(recipe, settings, words):
    named = {"start.network": "efficientnet-lite0"} if recipe == "pretrained" else {}
    config = build_recipe(recipe, settings.get("method")).with_settings({**named, **settings})
    assert describe_method(config) == words


# Where methods are named: their own package, the paper's tables, the words of the page, and a GPU's self-test.
NAMED = ("methods", "runner/recipes", "study/reproduce", "review/report/settings_text.py", "cli/gpu_check")


def test_the_core_knows_no_method_by_name():
    """Except ProPos, which is trained where no other method is asked for."""
    root, names = Path(propos.__file__).parent, set(method_names()) - {"propos"}
    found = []
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).as_posix().startswith(NAMED):
            continue
        tree = ast.parse(path.read_text())
        exported = {
            id(word)
            for node in tree.body
            if isinstance(node, ast.Assign) and any(getattr(name, "id", "") == "__all__" for name in node.targets)
            for word in ast.walk(node)
        }
        words = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in exported]
        found += [f"{path.relative_to(root)}:{node.lineno} {node.value}" for node in words if node.value in names]
    assert found == []
