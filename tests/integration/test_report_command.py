"""`propos report`, and reports that fail."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from helpers.command import command
from helpers.runs import make_run


@pytest.fixture
def run(tmp_path):
    digits = load_digits()
    images = digits.images[:60].astype(np.uint8)
    np.save(tmp_path / "images.npy", images)
    names = [str(number) for number in range(60)]
    return make_run(tmp_path / "run", tmp_path / "images.npy", names, images, clusters=4)


def test_a_report_is_written_and_says_how_to_open_it(run, capsys):
    result = command(capsys, "report", run.path)
    assert (result.code, result.err) == (0, "")
    assert result.out == f"View the report: open {run.path}/report/index.html\n"
    assert (run.path / "report" / "data.js").is_file()


def test_a_quiet_report_says_nothing(run, capsys):
    result = command(capsys, "report", run.path, "--quiet")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_folder_without_a_run_is_refused(tmp_path, capsys):
    result = command(capsys, "report", tmp_path)
    assert result.code == 2
    assert "not a run" in result.err


def test_an_unfinished_run_is_refused_and_left_as_it_was(run, capsys):
    (run.path / "clusters.parquet").unlink()
    before = sorted(run.path.iterdir())
    result = command(capsys, "report", run.path)
    assert result.code == 2
    assert "clusters.parquet" in result.err
    assert sorted(run.path.iterdir()) == before


def test_a_report_that_fails_is_one_warning_after_a_finished_run(run, capsys):
    from propos.cli.display import Terminal
    from propos.data import open_source
    from propos.review.report import write_report_or_warn

    (run.path / "clusters.parquet").write_bytes(b"damaged")
    with Terminal(quiet=True) as terminal:
        write_report_or_warn(run, open_source(run.config.source), terminal)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("warning: cannot write the report")
    assert captured.err.count("\n") == 1
    assert not (run.path / "report").exists()
