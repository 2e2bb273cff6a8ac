"""Existing files are never overwritten, so inputs are not either."""

import numpy as np
import pytest
from PIL import Image

from helpers.command import command
from helpers.small import digits, quick_train
from propos.runs import RunFolder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    fitted = quick_train(digits(100), train__epochs=1)
    run = RunFolder.create(tmp_path_factory.mktemp("runs") / "run", {"status": "finished"}, fitted.model.config)
    fitted.write(run)
    return run.path


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(4):
        pixels = np.random.default_rng(number).integers(256, size=(8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (tmp_path / "list.csv").write_text("image\n" + "".join(f"photos/{number}.png\n" for number in range(4)))
    (folder / "0.png").rename(folder / "0.csv")  # what a file is, its content says
    (tmp_path / "link.csv").symlink_to(tmp_path / "list.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "list.csv")
    return tmp_path


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("list.csv", "list.csv"),
        ("list.csv", "photos/../list.csv"),
        ("list.csv", "link.csv"),
        ("list.csv", "hard.csv"),
        ("link.csv", "list.csv"),
        ("photos", "photos/0.csv"),
    ],
)
def test_predict_does_not_overwrite_what_it_reads(finished, photos, monkeypatch, capsys, source, output):
    monkeypatch.chdir(photos)
    before = contents(photos)
    result = command(capsys, "predict", finished, source, "-o", output)
    assert (result.code, result.out) == (2, "")
    assert result.err == f"propos: {output}: already exists; refusing to overwrite it: choose another -o\n"
    assert contents(photos) == before


def test_predict_does_not_overwrite_the_run(finished, photos, capsys):
    before = contents(finished)
    result = command(capsys, "predict", finished, photos / "photos", "-o", finished / "clusters.parquet")
    assert result.code == 2
    assert contents(finished) == before


def test_a_table_is_written_once(finished, photos, monkeypatch, capsys):
    monkeypatch.chdir(photos)
    assert command(capsys, "predict", finished, "photos", "-o", "out.csv").code == 0
    written = (photos / "out.csv").read_text()
    assert len(written.splitlines()) == 5
    (photos / "photos" / "1.png").unlink()
    assert command(capsys, "predict", finished, "photos", "-o", "out.csv").code == 2
    assert (photos / "out.csv").read_text() == written


def test_a_link_that_leads_nowhere_is_not_followed(finished, photos, monkeypatch, capsys):
    monkeypatch.chdir(photos)
    (photos / "out.csv").symlink_to(photos / "elsewhere.csv")
    assert command(capsys, "predict", finished, "photos", "-o", "out.csv").code == 2
    assert not (photos / "elsewhere.csv").exists()


def test_inspect_draws_over_no_image(photos, monkeypatch, capsys):
    monkeypatch.chdir(photos)
    before = contents(photos)
    result = command(capsys, "inspect", "photos", "-k", 2, "--views", "photos/1.png")
    assert result.code == 2
    assert "photos/1.png: already exists" in result.err
    assert "choose another --views" in result.err
    assert contents(photos) == before
