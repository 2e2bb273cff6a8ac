"""The notebook runs from top to bottom, as a person would run it."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.full

NOTEBOOK = Path(__file__).parents[2] / "examples" / "digits.ipynb"


def test_the_notebook_runs_and_ends_with_labels(tmp_path):
    shutil.copy(NOTEBOOK, tmp_path)
    words = ["-m", "jupyter", "execute", "--inplace", "--timeout=600", "digits.ipynb"]
    done = subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    cells = json.loads((tmp_path / "digits.ipynb").read_text())["cells"]
    outputs = [output for cell in cells if cell["cell_type"] == "code" for output in cell["outputs"]]
    said = "".join("".join(output.get("text", "")) for output in outputs)
    assert "10 clusters" in said
    assert any("image/png" in output.get("data", {}) for output in outputs)
    with (tmp_path / "labels.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1797
    assert len({row["name"] for row in rows if row["name"]}) == 1
    moved = int(said.split("images moved:")[1].split()[0])
    assert moved > 0
    assert (tmp_path / "runs" / "notebook" / "report" / "index.html").is_file()


def test_the_notebook_is_kept_without_what_it_printed():
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)
