"""`propos doctor --gpu`: a GPU, which is a stand-in, agrees with the CPU, and every row notices a fault of it."""

import numpy as np
import pytest
import torch

from helpers import gpu
from helpers.command import command
from helpers.gpu import GPU, OnGpu, standing_in
from helpers.small import QUICK, save_digits
from propos.cli.doctor import _row
from propos.cli.gpu_check import check, finding, work
from propos.cli.gpu_check.check import joined, rows_of
from propos.cli.gpu_check.finding import Finding, largest_difference, relative_difference
from propos.runner import Request, plan

PRODUCTS = ("aten::mm", "aten::addmm", "aten::convolution")
ROUNDING = 1e-6  # of a product of single precision, relative: about eight units in its last place
TESTED = [
    "training step, float32",
    "training step, bfloat16",
    "embedding",
    "E-step",
    "predict",
    "k-means",
    "evaluate --knn",
    "evaluate --linear",
    "pinned transfer",
    "run",
    "run --start pretrained",
    "run --start pretrained, tuned: last",
    "run --start pretrained, tuned: all",
    "run --resume",
    "suggest-k",
    "compare",
]

QUICK_ROWS = [name for name in TESTED if "pretrained" not in name]  # a pretrained network takes half a minute each time
METHODS = ("byol", "dccm", "scan")  # a target, two halves of a backbone, several stages; tests of steps take all


def lose_the_last_row(name, made, _):
    """Have every product lose its last row: the last image, or the last unit's gradient."""
    if name in PRODUCTS:
        made.held[-1].zero_()


def lose_half_the_rows(name, made, _):
    """Have every product lose every other row."""
    if name in PRODUCTS:
        made.held[::2].zero_()


def never_repeat(name, made, count):
    """Have every product differ a little from time to time."""
    if name in PRODUCTS and count % 97 == 0:
        made.held.mul_(1.001)


def round_differently(name, made, count):
    """Have every product round in another way."""
    if name in PRODUCTS and made.held.dtype == torch.float32:
        draw = torch.Generator().manual_seed(count)
        made.held.mul_(1 + ROUNDING * torch.randn(made.held.shape, generator=draw))


# Scores change only if many images do, and the same fault twice leaves the same bits.
FAULTS = {
    **dict.fromkeys(TESTED, lose_the_last_row),
    "suggest-k": lose_half_the_rows,
    "compare": lose_half_the_rows,
    "run --resume": never_repeat,
}


@pytest.fixture
def request_of_few(tmp_path, monkeypatch):
    """Return a request of few digits and a small network."""
    monkeypatch.setattr(finding, "REPEATS", 1)
    monkeypatch.setattr(work, "TABLE_BYTES", 2**12)
    return Request(source=str(save_digits(tmp_path / "digits.npz")), recipe="digits", settings=QUICK)


@pytest.fixture
def broken(monkeypatch):
    """Return a way to break the stand-in."""

    def broken(fault):
        right, count = gpu._run, 0

        def wrong(func, args, kwargs):
            nonlocal count
            made, count = right(func, args, kwargs), count + 1
            if isinstance(made, OnGpu):
                fault(func._schema.name, made, count)
            return made

        monkeypatch.setattr(gpu, "_run", wrong)

    return broken


def found(request, folder, name):
    """Return what one row of the table finds on the stand-in."""
    with standing_in(), plan(request, "cuda") as planned:
        (row,) = [row for row in rows_of(request, planned, folder) if row.name == name]
        return row.find(GPU)


@pytest.mark.full
@pytest.mark.parametrize(
    "name", [name for name in QUICK_ROWS if name != "run --resume"]
)  # rounds differently each time
def test_a_row_agrees_on_a_card_that_rounds_differently(request_of_few, broken, tmp_path, name):
    broken(round_differently)
    row = found(request_of_few, tmp_path, name)
    assert row.agrees, row.difference


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in TESTED if name != "pinned transfer"])
def test_a_row_notices_a_card_that_computes_wrongly(request_of_few, broken, tmp_path, name):
    broken(FAULTS[name])
    row = found(request_of_few, tmp_path, name)
    assert not row.agrees, row.difference


@pytest.mark.full
def test_pinned_transfer_notices_a_changed_byte(request_of_few, monkeypatch, tmp_path):
    transfer = gpu.Gpu.transfer

    def changed(self, into, source, blocking, upward):
        transfer(self, into, source, blocking, upward)
        if not upward and into.dtype == torch.uint8:
            into.view(-1)[-1] ^= 1

    monkeypatch.setattr(gpu.Gpu, "transfer", changed)
    assert not found(request_of_few, tmp_path, "pinned transfer").agrees


@pytest.mark.full
@pytest.mark.parametrize("fault", [round_differently, lose_the_last_row])
def test_steps_of_methods_agree_or_are_named(request_of_few, broken, monkeypatch, fault):
    monkeypatch.setattr(work, "method_names", lambda: METHODS)
    broken(fault)
    with standing_in(), plan(request_of_few, "cuda") as planned:
        rows = list(check.rows_of_methods(request_of_few, planned))
        differing = [row.name for row in rows if not row.find(GPU).agrees]
    assert differing == ([] if fault is round_differently else [row.name for row in rows])


@pytest.mark.full
def test_the_table_has_a_row_for_every_kind_of_work(request_of_few, monkeypatch, capsys):
    monkeypatch.setattr(check.check_gpu, "__defaults__", (request_of_few,))
    monkeypatch.setattr(check, "rows_of", lambda *given: [row for row in rows_of(*given) if row.name in QUICK_ROWS])
    monkeypatch.setattr(work, "method_names", lambda: METHODS)
    with standing_in():
        result = command(capsys, "doctor", "--gpu")
    assert result.code == 0, result.out + result.err
    rows = [line.split(" | ") for line in result.out.splitlines() if line.startswith("| ")][1:]
    names = [row[0].removeprefix("| ") for row in rows]
    assert names == [*QUICK_ROWS, f"step of {len(METHODS)} methods"]
    assert {row[3] for row in rows} == {"ok"}
    assert "The GPU agrees with the CPU." in result.out


@pytest.mark.full
def test_a_card_that_computes_wrongly_ends_with_exit_code_1(request_of_few, broken, monkeypatch, capsys):
    monkeypatch.setattr(check.check_gpu, "__defaults__", (request_of_few,))
    monkeypatch.setattr(check, "rows_of", lambda *given: [row for row in rows_of(*given) if row.name == "k-means"])
    monkeypatch.setattr(check, "rows_of_methods", lambda *given: [])
    broken(lose_the_last_row)
    with standing_in():
        result = command(capsys, "doctor", "--gpu")
    assert result.code == 1
    assert result.err.startswith("propos: the GPU differs from the CPU: k-means: ")


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


def test_the_largest_difference_of_several_results_counts():
    expected = [torch.tensor([1.0, 2.0]), torch.tensor([100.0])]
    assert largest_difference([torch.tensor([1.0, 1.0]), torch.tensor([99.0])], expected) == 0.5
    assert largest_difference([], expected) == np.inf  # the work failed


def test_steps_that_agree_are_one_row_and_others_are_named():
    good, worse = Finding("step of byol", 1e-5, 0.01, 5), Finding("step of moco", 1e-4, 0.01, 7)
    bad = Finding("step of swav", 0.5, 0.01, 6)
    assert list(joined([good, bad, worse])) == [bad, Finding("step of 2 methods", 1e-4, 0.01, 7)]
    assert list(joined([bad])) == [bad]


@pytest.mark.parametrize(("difference", "word"), [(0.0, "ok"), (0.001, "ok"), (0.0011, "DIFFERS"), (np.nan, "DIFFERS")])
def test_a_row_says_whether_the_difference_is_within_the_bound(difference, word):
    row = _row(Finding("k-means", difference, 0.001, 3 * 2**20, 1234.5, 0.5))
    assert f"| 0.001 | {word} | 1,234 | 50% | 3 MB |" in row
