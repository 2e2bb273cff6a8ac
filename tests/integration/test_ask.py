"""`propos ask`, as a person would use it: what is printed, what is written, what is refused."""

import csv
import json

import pytest

from helpers.command import command
from helpers.runs import folder_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    made = folder_run(tmp_path_factory.mktemp("asked"))
    edit = {"v": 1, "id": "e0", "op": "rename", "cluster": 3, "name": "=threes"}
    (made.path / "edits.jsonl").write_text(json.dumps(edit) + "\n")
    return made


def test_images_come_in_blocks_and_are_written_as_they_are_shown(run, tmp_path, capsys):
    result = command(capsys, "ask", run.path, "-n", 30, "-o", tmp_path / "asked.csv")
    assert result.code == 0, result.err
    with (tmp_path / "asked.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len({row["image"] for row in rows}) == len(rows) == 30
    cluster = dict(zip(run.table.images, run.table.cluster.tolist(), strict=True))
    assert all(cluster[row["image"]] == int(row["cluster"]) != int(row["alternative"]) for row in rows)
    named = {row["name"] for row in rows if row["cluster"] == "3"}
    assert named == {"'=threes"}  # no spreadsheet takes it for a formula
    lines = result.out.splitlines()
    assert lines[-1] == f"30 images: {tmp_path / 'asked.csv'}"
    assert lines[-2] == f"Answer them on the page, under Questions: propos open {run.path}"
    assert lines[0].startswith("1. ")
    shown = [line.rsplit(": ", 1)[1] for line in lines[:-1] if line.startswith("   ")]
    assert shown == [row["image"] for row in rows]
    assert command(capsys, "ask", run.path, "-n", 30, "-o", tmp_path / "asked.json").code == 0
    again = json.loads((tmp_path / "asked.json").read_text(encoding="utf-8"))
    assert [row["image"] for row in again] == shown
    assert [row["group"] for row in again] == [int(row["group"]) for row in rows]


def test_what_cannot_be_written_is_refused_in_one_line(run, tmp_path, capsys):
    (tmp_path / "mine.csv").write_text("mine")
    for name, words in (("mine.csv", "already exists"), ("mine.txt", "name the file *.csv or *.json")):
        result = command(capsys, "ask", run.path, "-o", tmp_path / name)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert words in result.err
    assert (tmp_path / "mine.csv").read_text() == "mine"
