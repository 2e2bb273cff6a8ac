"""What a run took: added up over resumptions, and one run's memory not the next one's."""

import sys

import numpy as np
import pytest

from propos.runner import resource_usage
from propos.runner.resource_usage import ResourceUsage, peak_memory, reset_peak_memory
from propos.runs import RunInfo

LARGE = 300_000_000


def test_seconds_are_added_to_those_before_and_memory_is_the_most():
    before = RunInfo(status="running", seconds=100.0, processor_seconds=50.0, memory=10**15)
    stretch = ResourceUsage(before)
    sum(range(1_000_000))  # some work of the processor
    info = stretch.info()
    assert 100 < info["seconds"] < 1e5
    assert 50 < info["processor_seconds"] < 1e5
    assert info["memory"] == 10**15


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says it")
def test_memory_of_which_one_stretch_is_not_known_is_not_known(monkeypatch, tmp_path):
    first, second = (RunInfo(status="running", seconds=seconds, memory=None) for seconds in (0.0, 100.0))
    assert ResourceUsage(second).info()["memory"] is None
    assert ResourceUsage(first).info()["memory"] is not None
    monkeypatch.setattr(resource_usage, "STATUS", tmp_path / "none")  # a system without /proc
    reset_peak_memory()
    assert peak_memory() is None
    assert ResourceUsage(RunInfo(status="running", seconds=100.0, memory=5)).info()["memory"] is None


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says it")
def test_a_peak_that_the_system_does_not_forget_is_no_later_runs(monkeypatch, tmp_path):
    reset_peak_memory()
    monkeypatch.setattr(resource_usage, "MARKS", tmp_path / "no folder" / "clear_refs")
    large = np.ones(LARGE, np.uint8)
    before = peak_memory()
    del large
    reset_peak_memory()
    assert peak_memory() is None  # at most as much as another had: nobody knows how much
    larger = np.ones(2 * LARGE, np.uint8)
    assert peak_memory() > before  # a peak of its own
    del larger
    reset_peak_memory()
    assert peak_memory() is None
    monkeypatch.undo()
    reset_peak_memory()
    assert peak_memory() < before - 0.8 * LARGE


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says it")
def test_a_peak_is_forgotten_before_the_next_run():
    reset_peak_memory()
    low = peak_memory()
    large = np.ones(LARGE, np.uint8)
    high = peak_memory()
    assert high - low > 0.9 * LARGE
    del large
    assert peak_memory() == pytest.approx(high, rel=0.02)  # Linux counts pages nearly
    reset_peak_memory()
    assert peak_memory() < high - 0.8 * LARGE
