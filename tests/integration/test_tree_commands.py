"""The tree of clusters by commands: a proposed cut is accepted, and exports carry the names above clusters."""

import csv
import re

import pytest

from helpers.command import command
from helpers.runs import folder_run, write_edits
from propos.evaluation import nmi
from propos.review.report import write_report
from propos.runs import Run


@pytest.fixture
def run(tmp_path):
    made = folder_run(tmp_path)
    write_report(made)
    return Run.open(made.path)


def test_suggest_k_proposes_a_cut_of_the_tree(run, capsys):
    result = command(capsys, "suggest-k", run.path, "-k", "2..6")
    assert result.code == 0, result.err
    chosen, accepted = re.search(r"into (\d) clusters: propos proposals .* --accept (\S+)\n", result.out).groups()
    assert len(Run.open(run.path).corrected.clusters) == 10  # nothing changes by itself
    listed = command(capsys, "proposals", run.path).out
    assert f"{accepted} " in listed
    assert f"suggest-k: {chosen} clusters suggested" in listed
    assert command(capsys, "proposals", run.path, "--accept", accepted).code == 0
    assert len(Run.open(run.path).corrected.clusters) == int(chosen)


def test_exports_carry_the_names_above_clusters(run, tmp_path, capsys):
    tree = run.tree()
    upper, (main, other) = tree.merges[-1][0], tree.children[tree.root]
    write_edits(
        run.path / "edits.jsonl",
        {"op": "cut", "node": upper, "open": [upper]},
        {"op": "rename", "cluster": upper, "name": "all/digits"},
        {"op": "rename", "cluster": main, "name": "many"},
    )
    assert command(capsys, "export", run.path, "--to", "csv", "-o", tmp_path / "labels.csv").code == 0
    with (tmp_path / "labels.csv").open(newline="") as file:
        paths = {(int(row["cluster"]), row["path"]) for row in csv.DictReader(file)}
    assert paths == {(main, "all_digits/many"), (other, f"all_digits/cluster {other}")}
    assert command(capsys, "export", run.path, "--to", "folders", "-o", tmp_path / "sorted").code == 0
    folders = {path.parent.relative_to(tmp_path / "sorted").as_posix() for path in (tmp_path / "sorted").rglob("*.png")}
    assert folders == {"all_digits/many", f"all_digits/cluster {other}"}
    assert command(capsys, "export", run.path, "--to", "xmp", "-o", tmp_path / "xmp").code == 0
    found = {
        path.read_text().partition("<lr:hierarchicalSubject>")[2].partition("</lr")[0]
        for path in (tmp_path / "xmp").rglob("*.xmp")
    }
    assert found == {f"<rdf:Bag><rdf:li>{path}</rdf:li></rdf:Bag>" for path in ("all/digits|many", "all/digits")}
    split = ["--split", "80/20", "-o", tmp_path / "set"]
    assert command(capsys, "export", run.path, "--to", "folders", *split).code == 0
    classes = {path.parent.relative_to(tmp_path / "set").as_posix() for path in (tmp_path / "set").rglob("*.png")}
    assert classes == {f"{part}/{name}" for part in ("train", "val") for name in ("many", f"cluster {other}")}


@pytest.mark.full
def test_without_names_above_clusters_exports_are_flat(run, tmp_path, capsys):
    assert command(capsys, "export", run.path, "--to", "csv", "-o", tmp_path / "labels.csv").code == 0
    assert "path" not in (tmp_path / "labels.csv").read_text().splitlines()[0]


@pytest.mark.full
def test_a_run_goes_on_from_the_clusters_of_a_cut(tmp_path, capsys):
    made = command(capsys, "run", "digits", "-k", 4, "--method", "kmeans-pixels", "-o", tmp_path / "run")
    assert made.code == 0, made.err
    earlier = Run.open(tmp_path / "run")
    tree = earlier.tree()
    write_edits(earlier.path / "edits.jsonl", {"op": "cut", "node": tree.root, "open": tree.coarsest(6)})
    continued = ("run", "--from", earlier.path, "-o", tmp_path / "more", "--no-report")
    assert command(capsys, *continued).code == 0
    before, after = Run.open(earlier.path).corrected, Run.open(tmp_path / "more").corrected
    assert len(after.clusters) == len(before.clusters) == 6
    assert nmi(before.table.cluster, after.table.cluster) > 0.8
