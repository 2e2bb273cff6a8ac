"""Shared by all tests: hypothesis without surprises, real data where there is some."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# There is a process of tests for every core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("steady", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("steady")

DATA = Path(os.environ.get("PROPOS_DATA", Path(__file__).parents[2] / "shared" / "data"))
real_data = {"run": 0, "skipped": 0}
documentation = []  # its blocks: where, what, seconds of processor time


@pytest.fixture(autouse=True)
def _need_real_data(request):
    marker = request.node.get_closest_marker("real_data")
    if marker is None:
        return
    absent = [folder for folder in (DATA, *(DATA / name for name in marker.args)) if not folder.is_dir()]
    if absent:
        pytest.skip(f"no real data under {absent[0]} (set PROPOS_DATA)")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Decoded images go to a folder of these tests, never to the user's."""
    yield from _new_cache(tmp_path_factory)


@pytest.fixture(scope="module")
def cache_of_module(tmp_path_factory):
    """A cache folder for the tests of one file, empty at first."""
    yield from _new_cache(tmp_path_factory)


def _new_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROPOS_CACHE", str(tmp_path_factory.mktemp("caches")))
        yield


@pytest.fixture(scope="session")
def data_root():
    return DATA


def pytest_runtest_logreport(report):
    if "real_data" in report.keywords and (report.skipped or report.when == "call"):
        real_data["skipped" if report.skipped else "run"] += 1
    if report.when == "teardown":
        documentation.extend(block for name, block in report.user_properties if name == "documentation")


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"real-data tests: {real_data['run']} run, {real_data['skipped']} skipped")
    if documentation:
        seconds = sum(block[2] for block in documentation)
        terminalreporter.write_line(
            f"documentation: {len(documentation)} commands and programs ran, {seconds:.0f} s of processor time together"
        )
