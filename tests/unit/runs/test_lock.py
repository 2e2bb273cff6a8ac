"""One process at a time trains into a run folder."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from helpers.runs import complete
from propos.common.errors import InputError
from propos.runner.request import Output, Request
from propos.runner.run import run_request
from propos.runs import RunFolder, lock_folder, refuse_if_locked, wait_for_lock

HOLD = """
import sys, time
from pathlib import Path
from propos.runs import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that holds the folder until it is killed."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_process_is_told_which_one_holds_a_folder(tmp_path, holder):
    since = json.loads((tmp_path / ".lock").read_text())["since"]
    process = f"process {holder.pid} on {socket.gethostname()}, since {since}"
    whole = f"{tmp_path}: {process}, is training into this folder: stop it"
    for attempt in (lambda: refuse_if_locked(tmp_path), lambda: lock_folder(tmp_path).__enter__()):
        with pytest.raises(InputError) as refusal:
            attempt()
        assert str(refusal.value).startswith(whole)


def test_a_killed_process_leaves_no_lock(tmp_path, holder):
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    refuse_if_locked(tmp_path)
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / ".lock").read_text())["process"] == os.getpid()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", ["", "{", "[]", '"x"', "\udc80"])
def test_a_holder_that_cannot_be_read_is_another_process(tmp_path, content):
    with lock_folder(tmp_path):
        (tmp_path / ".lock").write_text(content, errors="surrogateescape")
        with pytest.raises(InputError, match="another process is training into this folder"):
            refuse_if_locked(tmp_path)


def test_neither_a_start_nor_a_resumption_joins_a_run_in_progress(tmp_path):
    info = {"status": "running", "command": "propos run", "source": {"fingerprint": "x"}}
    out = RunFolder.create(tmp_path / "run", info, complete(source="digits", clusters=10)).path
    with lock_folder(out):
        for request, resume in (
            (Request(output=Output(out=out)), True),
            (Request(source="digits", output=Output(out=out)), False),
        ):
            with pytest.raises(InputError, match=f"process {os.getpid()} on .* is training into this folder"):
                run_request(request, resume=resume)


def test_a_folder_that_holds_a_dead_ones_lock_is_free(tmp_path):
    (tmp_path / ".lock").touch()
    RunFolder.check_free(tmp_path)


def test_waiting_for_a_lock_does_not_make_the_folder_it_is_in(tmp_path):
    with pytest.raises(FileNotFoundError), wait_for_lock(tmp_path / "gone" / ".edits.lock"):
        pass
    assert list(tmp_path.iterdir()) == []
    kept = tmp_path / "run"
    kept.mkdir()
    (kept / "run.json").touch()
    with wait_for_lock(kept / ".edits.lock"):
        (kept / "run.json").unlink()  # all is deleted meanwhile
    assert list(tmp_path.iterdir()) == []
