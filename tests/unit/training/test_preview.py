"""The picture of the clusters that a run draws for those who watch it."""

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.small import digits
from propos.runs import PROGRESS, RunFolder
from propos.training import preview
from propos.training.e_step import Assignment
from propos.training.preview import MAP, PREVIEW, Preview
from propos.training.sheet import COLUMNS, GAP, SIDE


@pytest.fixture
def clock(monkeypatch):
    """Give a clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(preview.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def found():
    labels = torch.arange(40) % 2
    embeddings = torch.nn.functional.normalize(torch.stack([1.0 - labels, 0.0 + labels], dim=1))
    return Assignment(labels, torch.eye(2), embeddings, churn=None)


def test_each_cluster_is_a_row_of_its_images(tmp_path, clock, found):
    (tmp_path / PROGRESS).touch()
    source = digits(40)
    drawn = Preview(RunFolder(tmp_path))
    clock[0] = 10.0
    drawn.show(found, source)
    with Image.open(tmp_path / PREVIEW) as picture:
        shown = np.asarray(picture)
    assert shown.shape == (2 * (SIDE + GAP), COLUMNS * (SIDE + GAP), 3)
    for row in (0, 1):  # all are equally near, so the first of the cluster come first
        first = Image.fromarray(source.batch(np.array([row]))[0, 0]).convert("RGB").resize((SIDE, SIDE), 2)
        top = row * (SIDE + GAP)
        assert np.array_equal(shown[top : top + SIDE, :SIDE], np.asarray(first))
    with Image.open(tmp_path / MAP) as picture:
        assert len(picture.getcolors()) == 3  # two clusters on white
    drawn.remove()
    assert [path.name for path in tmp_path.iterdir()] == [PROGRESS]


class Slow:
    """A source that takes a while to read each image."""

    def __init__(self, source, clock, seconds):
        self._source, self._clock, self._seconds = source, clock, seconds

    def __getattr__(self, name):
        return getattr(self._source, name)

    def __len__(self):
        return len(self._source)

    def batch(self, positions):
        self._clock[0] += self._seconds * len(positions)
        return self._source.batch(positions)


@pytest.mark.parametrize("seconds", [0.0001, 0.01, 0.1])
def test_it_takes_at_most_two_per_cent_of_the_time(tmp_path, clock, found, seconds):
    (tmp_path / PROGRESS).touch()
    source = Slow(digits(40), clock, seconds)
    drawn, spent, times = Preview(RunFolder(tmp_path)), 0.0, []
    while clock[0] < 600:
        before = clock[0]
        drawn.show(found, source)
        spent += clock[0] - before
        assert spent <= 0.02 * before + 12 * seconds  # a row shows how long all of them take
        if (tmp_path / PREVIEW).exists():
            times.append(before)
            (tmp_path / PREVIEW).unlink()
        clock[0] += 1.0
    assert times[0] >= 2.0
    whole = 24 * seconds  # two rows
    assert len(times) >= min(590, 0.02 * 600 / whole - 2)


def test_nobody_who_watches_means_no_picture(tmp_path, clock, found):
    drawn = Preview(RunFolder(tmp_path))
    clock[0] = 1000.0
    drawn.show(found, digits(40))
    assert list(tmp_path.iterdir()) == []
