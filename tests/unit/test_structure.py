"""Rules for the files: few arguments, no slow import at the top of a module, no two test files of one name."""

import ast
from collections import Counter
from pathlib import Path

import propos

SOURCE = Path(propos.__file__).parent
MOST = 6  # arguments, besides self and cls
# Commands, their Python function, estimators after scikit-learn's pattern, k-means and the EM loop.
LONGER = {
    "cli/compare.py compare",
    "cli/evaluate.py evaluate",
    "cli/reproduce.py reproduce",
    "cli/run.py run",
    "cli/run_function.py run",
    "cli/suggest_k.py suggest_k",
    "clustering/estimator.py __init__",
    "clustering/kmeans.py spherical_kmeans",
    "runner/estimator.py __init__",
    "training/loop.py train",
}
SLOW = {"scipy", "sklearn", "pandas", "transformers", "huggingface_hub", "onnxruntime", "openTSNE"}
MODULES = {path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8")) for path in SOURCE.rglob("*.py")}


def arguments(function):
    given = function.args
    named = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(set(named) - {"self", "cls"}) + (given.vararg is not None) + (given.kwarg is not None)


def test_functions_take_at_most_six_arguments():
    functions = (
        (place, node)
        for place, module in MODULES.items()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    assert {f"{place} {node.name}" for place, node in functions if arguments(node) > MOST} == LONGER


def test_slow_packages_are_imported_where_they_are_called():
    early = set()
    for place, module in MODULES.items():
        for node in module.body:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            if {name.partition(".")[0] for name in names} & SLOW:
                early.add(place)
    assert early == {"clustering/estimator.py", "runner/estimator.py"}  # their classes have scikit-learn's as parents


def test_no_two_test_files_have_one_name():
    """Pytest takes them for one module, and the whole suite is not collected."""
    names = Counter(path.name for path in Path(__file__).parents[1].rglob("test_*.py"))
    assert [name for name, times in names.items() if times > 1] == []
