"""`propos.run`: the command for Python programs."""

import json
import subprocess
import sys

import numpy as np
import pytest

import propos
from helpers.command import command
from helpers.interruption import results
from helpers.small import QUICK, as_flags, digits, save_digits

SETTINGS = {key: value for key, value in QUICK.items() if key != "network.hidden"}


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    return save_digits(tmp_path_factory.mktemp("images") / "digits.npz")


def test_it_is_the_command(images, tmp_path, capsys):
    arguments = ["run", images, "-k", 10, "--seed", 2, *as_flags({**SETTINGS, "network.hidden": 32})]
    assert command(capsys, *arguments, "-o", tmp_path / "typed", "--no-report").code == 0
    said = capsys.readouterr
    run = propos.run(images, 10, seed=2, settings=SETTINGS, network__hidden=32, out=tmp_path / "called")
    assert "Done in" in said().out
    assert run.path == tmp_path / "called"
    assert results(tmp_path / "called") == results(tmp_path / "typed")
    assert (tmp_path / "called/report/index.html").is_file()
    assert json.loads((tmp_path / "called/run.json").read_text())["command"] == "propos.run"
    typed, called = (json.loads((tmp_path / name / "run.json").read_text()) for name in ("typed", "called"))
    assert typed["plan"] == called["plan"]


def test_arrays_labels_and_a_range_of_clusters_serve(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = propos.run(digits().images[..., 0], (2, 4), labels=digits().labels, settings=QUICK, report=False, quiet=True)
    assert capsys.readouterr().out == ""
    assert run.path.name == "images-1"
    assert run.config.clusters in (2, 3, 4)
    assert run.config.suggest.range == (2, 4)
    assert np.array_equal(run.table.label, digits().labels)


def test_mistakes_are_one_line(images, tmp_path):
    for mistake, said in [
        ({"propos__psl_wieght": 1}, "unknown key propos.psl_wieght: did you mean propos.psl_weight"),
        ({"k": "40..5"}, "write the smaller number first"),
        ({"time": "soon"}, "write it as 45s, 30m or 2h"),
        ({"resume": True, "seed": 1}, "no such folder"),
    ]:
        with pytest.raises(ValueError, match=said):
            propos.run(images, out=tmp_path / "run", **mistake)
    assert not (tmp_path / "run").exists()


def test_importing_the_package_imports_no_torch():
    code = "import sys, propos; assert 'torch' not in sys.modules; propos.run; assert 'run' in dir(propos)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
