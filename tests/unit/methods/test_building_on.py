"""Methods that build on a network another has trained: as later stages of one run, or from a finished run."""

import ast
from pathlib import Path

import numpy as np
import pytest
import torch

import propos
from helpers.command import command
from helpers.small import CPU, QUICK, as_flags, digits, quick_config, quick_train, save_digits
from propos.common.errors import InputError
from propos.methods import ABOUT, METHODS, build_method, describe
from propos.runner.recipes import on_top
from propos.runs import Run, RunFolder
from propos.training import Silent, continued, start_from, train
from propos.training.learner import build_learner
from propos.training.state import State

BUILDING = [name for name in METHODS if name != "kmeans-features" and quick_config(method=name).pretext.method]


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """Return a finished run of a method, trained when first asked for."""
    runs, folder = {}, tmp_path_factory.mktemp("runs")

    def of(method, epochs=1):
        if method not in runs:
            run = RunFolder.create(folder / method, {"status": "finished"}, quick_config(method=method))
            quick_train(method=method, train__epochs=epochs).write(run)
            runs[method] = Run.open(run.path)
        return runs[method]

    return of


def begun(run, method, **settings):
    """Return a learner that goes on from a run by another method, as it begins, and the run's own weights."""
    config, source = on_top(continued(run), method).with_settings(settings), digits()
    start = start_from(run, source, CPU, config)
    learner, state = build_learner(config, source, CPU), State()
    start.begin(learner, state)
    return learner, {name: torch.from_numpy(array) for name, array in run.weights().items()}


def test_the_stages_before_are_those_of_the_method_below():
    config = quick_config(method="dcboost", train__epochs=10)
    method, below = build_method(config), build_method(quick_config(method="propos", train__epochs=10))
    assert [stage.name for stage in method.stages] == ["train", "boost"]
    assert [term.name for term in method.stages[0].terms] == [term.name for term in below.stages[0].terms]
    assert [len(span) for span in method.spans(10)] == [8, 2]
    other = quick_config(method="dcboost", pretext__method="simclr")
    assert [term.name for term in build_method(other).stages[0].terms] == ["contrast"]


def test_from_a_run_of_its_kind_every_weight_goes_on(earlier):
    learner, weights = begun(earlier("propos"), "dcboost")
    assert len(learner.method.stages) == 1
    found = learner.network.state_dict()
    assert found.keys() == weights.keys()
    assert all(torch.equal(found[name], weights[name]) for name in weights)


def test_what_a_run_had_not_begins_by_chance_and_its_target_is_the_network_itself(earlier):
    learner, weights = begun(earlier("simclr"), "dcboost")
    found = learner.network.state_dict()
    for name, tensor in found.items():
        if name.startswith(("online.", "target.")):
            assert torch.equal(tensor, weights[name.replace("target.", "online.", 1)]), name
    assert not any(name.startswith("predictor") for name in weights)
    assert found["predictor.0.weight"].abs().max() > 0
    boost = learner.stage
    assert [term.starts for term in boost.terms] == [0, 0, 0]  # one epoch: nothing to wait for


def test_another_number_of_heads_begins_by_chance_on_the_same_network(earlier):
    learner, weights = begun(earlier("temi", epochs=2), "temi", **{"heads.count": 3})
    found = learner.network.state_dict()
    assert weights["shares"].shape == (16, 10)
    assert found["shares"].shape == (3, 10)
    assert found["cluster_head.chosen"] == found["target_head.chosen"] == 0
    first = "cluster_head.each.0.0.weight"
    assert not torch.equal(found[first], weights[first])
    assert torch.equal(found[first.replace("cluster", "target")], found[first])
    for name, tensor in found.items():
        assert not name.startswith("online.") or torch.equal(tensor, weights[name]), name


def test_a_new_predictor_learns_before_clusters_are_pulled():
    starts = {
        below: [term.starts for term in build_method(_boosting(below)).stages[-1].terms]
        for below in ("propos", "simclr")
    }
    assert starts == {"propos": [0, 0, 0], "simclr": [0, 10, 10]}


def _boosting(below):
    """Return the authors' 800 and 200 epochs."""
    return quick_config(method="dcboost", pretext__method=below, train__epochs=1000)


@pytest.mark.parametrize("method", BUILDING)
def test_a_finished_run_goes_on_with_every_such_method(earlier, method):
    run = earlier("byol")
    config, source = on_top(continued(run), method).with_settings({"train.epochs": 2}), digits()
    fitted = train(config, source, CPU, Silent(), start=start_from(run, source, CPU, config))
    assert fitted.model.config.pretext.method == "byol"
    assert set(fitted.table.cluster.tolist()) <= set(range(10))
    assert np.isfinite(fitted.embeddings).all()


def test_what_cannot_be_built_on_is_refused():
    cases = {
        "kmeans-pixels": "learns nothing to build on",
        "dcboost": "builds on what another has learnt",
        "propso": "did you mean propos",
    }
    for below, words in cases.items():
        with pytest.raises(InputError, match=words):
            quick_config(method="dcboost", pretext__method=below)


def test_neighbours_are_foretold_by_a_predictor_that_has_learnt():
    method = build_method(quick_config(method="conr", train__epochs=1000, pretext__method="propos"))
    assert [stage.name for stage in method.stages] == ["train", "refining"]
    assert [len(span) for span in method.spans(1000)] == [800, 200]
    (term,) = method.stages[1].terms
    assert (term.objective.count, term.objective.rise) == (10, 50)
    with pytest.raises(InputError, match=r"pretext\.method = simclr: has no predictor .* choose byol or propos"):
        quick_config(method="conr", pretext__method="simclr")


def test_a_person_goes_on_from_a_run_by_the_command(tmp_path, capsys):
    images, flags = save_digits(tmp_path / "digits.npz"), [*as_flags(QUICK), "--no-report", "--quiet"]
    made = command(capsys, "run", images, "--method", "simclr", *flags, "--out", tmp_path / "first")
    assert made.code == 0, made.err
    more = command(capsys, "run", "--from", tmp_path / "first", "--method", "dcboost", "--out", tmp_path / "second")
    assert more.code == 0, more.err
    run = Run.open(tmp_path / "second")
    assert (run.config.method, run.config.pretext.method, run.config.pretext.share) == ("dcboost", "simclr", 0.0)
    assert next(record["stage"] for record in run.history) == "boost"
    again = command(capsys, "run", "--from", tmp_path / "second", "--out", tmp_path / "third", "--quiet", "--no-report")
    assert again.code == 0, again.err
    back = command(capsys, "run", "--from", tmp_path / "second", "--method", "byol", "--out", tmp_path / "fourth")
    assert back.code == 2
    assert "whose network differs" in back.err


def test_however_short_the_time_every_stage_has_an_epoch(tmp_path, capsys):
    images, quick = save_digits(tmp_path / "digits.npz"), {k: v for k, v in QUICK.items() if k != "train.epochs"}
    flags = [*as_flags(quick), "--no-report", "--quiet", "--time", "0.01s"]
    made = command(capsys, "run", images, "--method", "scan", *flags, "--out", tmp_path / "run")
    assert made.code == 0, made.err
    stages = [record["stage"] for record in Run.open(tmp_path / "run").history[:-1]]
    assert stages == ["train", "clustering", "self-labelling"]


def test_every_method_says_where_it_is_from(capsys):
    assert set(ABOUT) == set(METHODS)
    lines = command(capsys, "methods").out.splitlines()
    assert len(lines) == 2 * len(METHODS)
    for name, first, second in zip(METHODS, lines[::2], lines[1::2], strict=True):
        assert first.split()[0] == name
        assert first.endswith(describe(name))
        assert (str(ABOUT[name].year) in first) or ABOUT[name].year is None
        assert ABOUT[name].reference in second
        assert ABOUT[name].verified in second


# Where methods are named: their own rooms, the paper's tables, and the words of the page.
NAMED = ("methods", "objectives", "recipes", "reproduce", "report/words.py")


def test_the_core_knows_no_method_by_name():
    """But ProPos, which is what is trained where nothing else is asked for."""
    root, names = Path(propos.__file__).parent, set(METHODS) - {"propos"}
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
