"""What a run took: added up over resumptions, and one run's memory not the next one's."""

import sys

import numpy as np
import pytest

from propos.runner.spending import Spending, forget_peak_memory, peak_memory
from propos.runs import RunInfo

LARGE = 300_000_000


def test_seconds_are_added_to_those_before_and_memory_is_the_most():
    before = RunInfo(status="running", seconds=100.0, processor_seconds=50.0, memory=10**15)
    spending = Spending(before)
    sum(range(1_000_000))  # some work of the processor
    info = spending.info()
    assert 100 < info["seconds"] < 1e5
    assert 50 < info["processor_seconds"] < 1e5
    assert info["memory"] == 10**15


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says it")
def test_a_peak_is_forgotten_before_the_next_run():
    forget_peak_memory()
    low = peak_memory()
    large = np.ones(LARGE, np.uint8)
    high = peak_memory()
    assert high - low > 0.9 * LARGE
    del large
    assert peak_memory() >= high
    forget_peak_memory()
    assert peak_memory() < high - 0.8 * LARGE
