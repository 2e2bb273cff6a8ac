"""The run that a restart by torchrun resumes."""

import pytest

from helpers.runs import complete
from propos.runner.request import Output, Request
from propos.runner.run import find_restarted_run
from propos.runs import RunFolder

COMMAND = "propos run digits --out here"


def request_for(out):
    return Request(source="digits", output=Output(out=out, command=COMMAND))


@pytest.mark.parametrize(
    ("began", "goes_on"),
    [
        ({}, True),
        ({"status": "finished"}, True),  # only its page was missing
        ({"job": "another"}, False),
        ({"command": "propos run digits --seed 1 --out here"}, False),
        ({"job": None}, False),
    ],
)
def test_a_restart_resumes_the_run_of_its_own_job(tmp_path, monkeypatch, began, goes_on):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "job-7")
    info = {"command": COMMAND, "status": "running", "job": "job-7", **began}
    RunFolder.create(tmp_path / "run", info, complete(source="digits", clusters=10))
    assert (find_restarted_run(request_for(tmp_path / "run")) is not None) == goes_on


@pytest.mark.parametrize(("status", "goes_on"), [("running", True), ("finished", False)])
def test_a_job_without_an_id_does_not_resume_a_finished_run(tmp_path, monkeypatch, status, goes_on):
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    info = {"command": COMMAND, "status": status, "job": "none"}
    RunFolder.create(tmp_path / "run", info, complete(source="digits", clusters=10))
    assert (find_restarted_run(request_for(tmp_path / "run")) is not None) == goes_on


def test_a_first_start_resumes_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    assert find_restarted_run(request_for(tmp_path / "run")) is None
