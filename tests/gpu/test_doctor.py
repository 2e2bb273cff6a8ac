"""`propos doctor --gpu`: it compares a GPU, which is a stand-in, with the CPU, and notices a wrong result."""

import numpy as np
import pytest
import torch

from helpers import gpu
from helpers.command import command
from helpers.gpu import OnGpu, standing_in
from helpers.small import QUICK, digits
from propos.cli.doctor import _row
from propos.runner import Request, gpu_check
from propos.runner.gpu_check import Finding, relative_difference

WORK = [
    "training step, float32",
    "training step, bfloat16",
    "embedding",
    "predict",
    "k-means",
    "k-NN",
    "linear probe",
    "pinned transfer",
    "resume",
]


@pytest.fixture
def few(monkeypatch):
    """Have the self-test take few digits and a small network."""
    source = digits(120)
    request = Request(source=source.images[..., 0], labels=source.labels, recipe="digits", settings=QUICK)
    monkeypatch.setattr(gpu_check.check_gpu, "__defaults__", (request,))
    monkeypatch.setattr(gpu_check, "REPEATS", 1)
    monkeypatch.setattr(gpu_check, "TABLE_BYTES", 2**12)


@pytest.mark.full
@pytest.mark.usefixtures("few")
def test_every_kind_of_work_agrees_and_is_a_row_of_the_table(capsys):
    with standing_in():
        result = command(capsys, "doctor", "--gpu")
    assert result.code == 0, result.out + result.err
    rows = [line.split(" | ") for line in result.out.splitlines() if line.startswith("| ")][1:]
    assert [row[0].removeprefix("| ") for row in rows] == WORK
    assert {row[3] for row in rows} == {"ok"}
    assert "The GPU agrees with the CPU." in result.out


@pytest.mark.full
@pytest.mark.usefixtures("few")
def test_a_card_that_computes_wrongly_is_found_out(monkeypatch, capsys):
    """Every product of the card loses its last row."""
    right = gpu._run

    def wrong(func, args, kwargs):
        made = right(func, args, kwargs)
        if func._schema.name in ("aten::mm", "aten::addmm", "aten::convolution") and isinstance(made, OnGpu):
            made.held[-1].zero_()
        return made

    with standing_in():
        monkeypatch.setattr(gpu, "_run", wrong)
        result = command(capsys, "doctor", "--gpu")
    assert result.code == 1
    assert result.err.startswith("propos: the GPU differs from the CPU: training step, float32, ")
    differing = [line.split(" | ")[0].removeprefix("| ") for line in result.out.splitlines() if "DIFFERS" in line]
    assert {"training step, float32", "embedding", "k-means"} <= set(differing)
    assert "| pinned transfer | 0.0e+00 | 0 | ok |" in result.out


def test_without_a_gpu_it_says_so_in_a_line(capsys):
    result = command(capsys, "doctor", "--gpu")
    assert result.code == 2
    assert result.out == ""
    assert result.err.count("\n") == 1
    assert "no NVIDIA GPU on this machine" in result.err


@pytest.mark.parametrize(
    ("found", "expected", "difference"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.0, 2.5], [1.0, 2.0], 0.25),  # relative to the largest value
        ([1.0, np.nan], [1.0, 2.0], np.inf),
        ([1.0, np.inf], [1.0, 2.0], np.inf),
        ([1.0], [1.0, 2.0], np.inf),
    ],
)
def test_differences_are_relative_and_nothing_hides_in_nan(found, expected, difference):
    assert relative_difference(torch.tensor(found), torch.tensor(expected)) == difference


@pytest.mark.parametrize(("difference", "word"), [(0.0, "ok"), (0.001, "ok"), (0.0011, "DIFFERS"), (np.nan, "DIFFERS")])
def test_a_row_says_whether_the_difference_is_within_the_bound(difference, word):
    row = _row(Finding("k-means", difference, 0.001, 3 * 2**20, 1234.5, 0.5))
    assert f"| 0.001 | {word} | 1,234 | 50% | 3 MB |" in row
