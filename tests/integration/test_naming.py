"""Names proposed for a run: by the network's classifier if it is installed, and by a package that adds a namer."""

import shutil
import sys

import pytest

from helpers.command import command
from helpers.pretrained import pictures
from helpers.runs import folder_run
from propos.networks import installed
from propos.runs import Run

NAMER = """
from propos.review.naming import Named

def name(run, source, show_task):
    ids = sorted(set(run.corrected.table.cluster.tolist()))
    return [Named(ids[0], "teapots", f"{len(source)} images seen"), Named(ids[1], None, "nothing is clear")]
"""


@pytest.fixture
def _toy(monkeypatch, tmp_path):
    """Install a package that adds a namer."""
    package = tmp_path / "site" / "toy_namer-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-namer\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[propos.namers]\ntoy = toy_namer:name\n")
    (tmp_path / "site" / "toy_namer.py").write_text(NAMER)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield
    sys.modules.pop("toy_namer", None)


@pytest.mark.full
@pytest.mark.usefixtures("_toy")
def test_a_package_adds_a_namer(tmp_path, capsys):
    run = folder_run(tmp_path)
    result = command(capsys, "name", run.path, "--quiet")
    assert result.code == 0, result.err
    first, second = result.out.splitlines()
    assert "teapots" in first
    assert second.split()[1] == "unsure"
    (proposal, state), *others = Run.open(run.path).proposals()
    assert (proposal.source, proposal.edit.name, state, others) == ("toy", "teapots", "open", [])
    command(capsys, "proposals", run.path, "--dismiss", "all")
    command(capsys, "name", run.path, "--quiet")
    assert [state for _, state in Run.open(run.path).proposals()] == ["dismissed"]  # it does not come back


@pytest.mark.full
def test_a_run_without_words_says_so_on_one_line(tmp_path, capsys):
    run = folder_run(tmp_path)
    result = command(capsys, "name", run.path)
    assert result.code == 2
    assert "its network cannot name clusters" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.skipif(installed() is None, reason="the weights of the extra pretrained are not installed")
def test_names_are_proposed_after_a_run_and_follow_corrections(tmp_path, capsys):
    photos = pictures(tmp_path / "photos", each=4)
    made = command(capsys, "run", photos, "-k", 3, "--start", "pretrained", "-o", tmp_path / "run", "--quiet")
    assert made.code == 0, made.err
    assert "cannot propose names" not in made.err
    result = command(capsys, "name", tmp_path / "run", "--quiet")
    assert len(result.out.splitlines()) == 3
    assert all("of its images look like" in line for line in result.out.splitlines())
    shutil.rmtree(photos)
    gone = command(capsys, "name", tmp_path / "run")
    assert gone.code == 2
