import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from propos.common.spreadsheets import guarded, read_text, unguarded
from propos.config import Config
from propos.runs import ImageTable, RunFolder, read_label_file, write_table
from propos.runs.schema import read_skipped

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''@", "-", "+"]


@given(st.text(st.sampled_from("'=+-@\t\r1.e a"), max_size=6))
def test_any_cell_is_read_back_the_same(cell):
    assert unguarded(guarded(cell)) == cell


@pytest.mark.parametrize("cell", FORMULAS)
def test_formulas_are_guarded(cell):
    assert guarded(cell) == "'" + cell


@pytest.mark.parametrize("cell", ["", "cat", "1", "-1", "+1.5", "-1e-3", "-.5", "'quoted'", "a=b", "é"])
def test_words_and_numbers_stay_as_they_are(cell):
    assert guarded(cell) == cell


def test_tables_are_guarded_and_read_back_by_us(tmp_path):
    count = len(FORMULAS)
    zeros = np.zeros(count)
    write_table(ImageTable(FORMULAS, zeros, zeros - 1, zeros, np.array(FORMULAS)), tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["image"] for row in rows] == [row["label"] for row in rows] == ["'" + cell for cell in FORMULAS]
    assert {row["confidence"] for row in rows} == {"-1"}
    assert read_label_file(tmp_path / "t.csv", FORMULAS).tolist() == FORMULAS


def test_the_list_of_skipped_files_is_guarded_and_read_back(tmp_path):
    run = RunFolder.create(tmp_path / "run", {"status": "running"}, Config())
    run.write_skipped([("=1+1.png", "empty file"), ("a.png", "-")])
    assert (run.path / "skipped.csv").read_text() == "image,reason\n'=1+1.png,empty file\na.png,'-\n"
    assert read_skipped(run.path / "skipped.csv") == [("=1+1.png", "empty file"), ("a.png", "-")]


def test_columns_are_found_whatever_their_case_and_missing_cells_are_empty(tmp_path):
    (tmp_path / "a.csv").write_text(" Image ,LABEL\n\nx,y,z\nw\n")
    table = read_text(tmp_path / "a.csv").table()
    assert table.columns == ["image", "label"]
    assert table.rows == [(3, {"image": "x", "label": "y"}), (4, {"image": "w", "label": ""})]
