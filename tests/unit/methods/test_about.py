"""What the package says of its methods, and which parts of it may know them by name."""

import ast
from pathlib import Path

import propos
from helpers.command import command
from propos.config import Config
from propos.methods import describe, find_method, method_in_words, method_names
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


def test_a_method_is_named_in_words_with_what_its_settings_add():
    words = {
        "propos": "ProPos",
        "scan": "SCAN",
        "kmeans-features": "k-means on efficientnet-lite0 features, nothing is trained",
        "kmeans-pixels": "k-means on pixels, nothing is trained",
    }
    for name, expected in words.items():
        network = {"start.network": "efficientnet-lite0"} if name == "kmeans-features" else {}
        assert method_in_words(Config().with_settings({"method": name, **network})) == expected
    grey = build_recipe("small-grey")
    assert method_in_words(grey) == "ProPos + contrast + pull"


# Where methods are named: their own package, the paper's tables, and the words of the page.
NAMED = ("methods", "runner/recipes", "study/reproduce", "review/report/words.py")


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
