"""Corrections are safe while other programs delete, cut or replace the log, or the run itself, under a server."""

import http.client
import json
import os
import shutil
import signal
import threading
import time
from collections import Counter
from contextlib import closing
from itertools import count, cycle

import pytest

from helpers.runs import folder_run
from helpers.served import Served
from propos.review.report import write_report
from propos.runs import Run, as_line, parse_edits

ROUNDS = ("deleted", "cut", "replaced")  # how the log is changed last before the server is killed
CONFIRMED = 334  # edits a round
THREADS = 4
STRANGER = b'{"v": 1, "id": "zz", "op": "junk", "cluster": 1}\n'
KEPT = "edits-kept-1.jsonl"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    run = folder_run(tmp_path_factory.mktemp("changed"))
    write_report(run)
    return run.path


@pytest.fixture
def folder(made, tmp_path):
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def serve(folder):
    """Give a function that serves the run."""
    servers = []

    def start(**keywords):
        servers.append(Served(folder, **keywords))
        return servers[-1]

    yield start
    for server in servers:
        server.end(signal.SIGKILL)


def named(number):
    return {"id": f"e{number}", "op": "rename", "cluster": number % 10, "name": f"name {number}"}


def saved_five(server):
    for number in range(5):
        assert server.save(named(number))[0] == 200
    return server.folder / "edits.jsonl"


def ids(log):
    return [json.loads(line)["id"] for line in log.read_bytes().splitlines()]


FIVE = [f"e{number}" for number in range(5)]
LOST = {
    "deleted": lambda log: log.unlink(),
    "emptied": lambda log: os.truncate(log, 0),
    "cut between lines": lambda log: log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:3])),
    "cut within a line": lambda log: os.truncate(log, log.stat().st_size - 20),
    "put back from an older copy": lambda log: put(log, b"".join(log.read_bytes().splitlines(keepends=True)[:2])),
}


def put(path, content):
    """Put another file into the place of one."""
    new = path.with_name("new")
    new.write_bytes(content)
    new.replace(path)


def test_a_log_that_lost_edits_is_written_whole_again(serve):
    server = serve()
    log = saved_five(server)
    for number, lose in enumerate(LOST.values(), start=5):
        before = log.read_bytes()
        lose(log)
        assert server.ask("api/edits")[0] == 200  # as every window asks each second
        assert log.read_bytes() == before
        lose(log)
        assert server.save(named(number))[0] == 200
        assert ids(log) == [f"e{each}" for each in range(number + 1)]
        assert f"{log}: was deleted or cut; restored with its {number} edits\n" in server.process.complaints()
    before = log.read_bytes()
    log.unlink()
    assert f"{log} holds 10 edits" in server.end()
    assert log.read_bytes() == before


REPLACED = {
    "renamed over": put,
    "copied over": lambda log, content: log.write_bytes(content),
    "copied over, longer": lambda log, content: log.write_bytes(content + b"\n" * 10_000),
    "of the same size": lambda log, content: log.write_bytes(content.ljust(log.stat().st_size)),
    "not a log": lambda log, content: log.write_bytes(b"\0" * 500),
}


def test_a_log_that_was_replaced_is_left_as_it_is_and_the_edits_before_are_kept(serve):
    server = serve()
    log = saved_five(server)
    for number, replace in enumerate(REPLACED.values(), start=5):
        before = log.read_bytes()
        replace(log, STRANGER)
        stranger = log.read_bytes()
        for status, said in (server.save(named(number)), server.ask("api/edits"), server.save(named(number))):
            assert status == 503  # a page keeps what it sent
            assert f"{log}: was replaced by another program; what it held ({number} edits) is in " in said.decode()
            assert said.count(b"\n") == 1
        assert log.read_bytes() == stranger
        assert log.with_name(KEPT).read_bytes() == before
        log.with_name(KEPT).rename(log)
        assert server.save(named(number))[0] == 200
        assert ids(log) == [f"e{each}" for each in range(number + 1)]
    put(log, STRANGER)
    assert server.end() == "Closed\n"
    assert f"what it held (10 edits) is in {log.with_name(KEPT)}: rename that file" in server.complaint
    assert server.process.returncode == 1


def test_what_another_program_appended_and_nobody_can_read_is_refused(serve):
    server = serve()
    log = saved_five(server)
    whole = log.read_bytes()
    log.write_bytes(whole + b"not an edit\n")
    status, said = server.save(named(5))
    assert (status, said.decode()) == (503, f"{log}: line 6: cannot be read: not an edit in JSON\n")
    log.write_bytes(whole)
    assert server.save(named(5))[0] == 200


def test_an_edit_that_is_refused_is_told_what_is_wrong_with_it(serve):
    server = serve()
    line = json.dumps({"v": 1, **named(0), "id": "a b"})
    for sent, where in ((line + "\n", "line 1"), (line, "the last line")):
        status, said = server.ask("api/edits?since=0&last=", "POST", sent.encode())
        assert status == 422
        assert said.decode().startswith(f"edits: {where}: rename: id = 'a b': String should match pattern")


def test_a_run_that_was_renamed_is_not_made_again_and_closing_does_not_claim_it(serve, folder, tmp_path):
    server = serve()
    log = saved_five(server)
    folder.rename(tmp_path / "renamed")
    gone = f"{folder}: the run that was opened is no longer here, nor are its 5 edits"
    for status, said in (server.save(named(5)), server.ask("api/edits")):
        assert status == 503
        assert gone in said.decode()
    assert ids(tmp_path / "renamed" / "edits.jsonl") == FIVE
    (tmp_path / "renamed").rename(folder)
    assert server.save(named(5))[0] == 200
    assert ids(log) == [*FIVE, "e5"]
    shutil.rmtree(folder)
    assert server.save(named(6))[0] == 503
    assert server.end() == "Closed\n"
    assert server.complaint.count("\n") == 1
    assert server.complaint.startswith(
        f"propos: {folder}: the run that was opened is no longer here, nor are its 6 edits"
    )
    assert "; 1 edit not saved: " in server.complaint
    assert server.process.returncode == 1
    assert not folder.exists()


def test_another_run_in_the_place_of_the_one_that_was_opened_is_left_alone(serve, folder, tmp_path):
    server = serve()
    saved_five(server)
    folder.rename(tmp_path / "renamed")
    shutil.copytree(tmp_path / "renamed", folder)
    info = folder / "run.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "seconds": 13.0}))
    for log in ("edits.jsonl", "none"):
        if log == "none":
            (folder / "edits.jsonl").unlink()
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert server.save(named(5))[0] == 503
        assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    server.end()
    assert server.process.returncode == 1
    assert ids(tmp_path / "renamed" / "edits.jsonl") == FIVE


def test_closing_on_a_full_disk_says_what_is_safe_and_what_is_not(serve, folder):
    """No file may become larger than the log with its first edit, so that neither a second one nor the page fits."""
    first = {"id": "e0", "op": "describe", "cluster": 1, "text": "x" * 2_000}
    (edit,) = parse_edits(json.dumps({"v": 1, **first}).encode(), "given")[0]
    server = serve(largest_file=len(as_line(edit[1])))
    assert server.save(first)[0] == 200
    before = (folder / "edits.jsonl").read_bytes()
    for number in (1, 2, 1):
        status, said = server.save(named(number))
        assert status == 500
        assert b"free some space and try again" in said
    assert (folder / "edits.jsonl").read_bytes() == before
    assert server.end() == f"Closed; {folder / 'edits.jsonl'} holds 1 edit\n"
    assert server.complaint.count("\n") == 1
    assert f"{folder / 'report' / 'index.html'} does not show them: File too large; free some space" in server.complaint
    assert "2 edits not saved: the browser keeps unsaved corrections" in server.complaint
    assert server.process.returncode == 1


class Savers:
    """Threads that save one edit after another, and what became of each."""

    def __init__(self, server, name):
        self.server, self.name = server, name
        self.confirmed, self.refused, self.cut_off = [], [], []
        self.threads = [threading.Thread(target=self._save, args=(number,)) for number in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def _save(self, thread):
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.address.port)) as connection:
            self._save_through(connection, thread)

    def _save_through(self, connection, thread):
        known = "since=0"
        for number in count():
            edit = {"v": 1, "id": f"{self.name}-{thread}-{number}", "op": "describe", "cluster": thread, "text": "x"}
            try:
                connection.request("POST", f"/{self.server.token}/api/edits?{known}", json.dumps(edit),
                                   {"Origin": f"http://{self.server.host}"})  # fmt: skip
                answer = connection.getresponse()
                content = answer.read()
            except (OSError, http.client.HTTPException):
                self.cut_off.append(edit["id"])
                return
            if answer.status == 200:
                self.confirmed.append(edit["id"])
                log = json.loads(content)
                known = f"since={log['version']}&last={log['edits'][-1]['id']}"
            else:
                assert answer.status == 503
                self.refused.append(edit["id"])

    def wait(self, condition):
        while not condition():
            assert all(thread.is_alive() for thread in self.threads), "a thread has ended"
            time.sleep(0.001)

    def wait_for_more(self, count):
        """Wait until more were confirmed than were under way."""
        goal = len(self.confirmed) + max(count, THREADS + 1)
        self.wait(lambda: len(self.confirmed) >= goal)

    def wait_for_refusals(self):
        goal = len(self.refused) + THREADS + 1
        self.wait(lambda: len(self.refused) >= goal)

    def join(self):
        for thread in self.threads:
            thread.join()


@pytest.mark.full
def test_a_server_killed_while_its_log_changes_loses_no_edit_that_it_confirmed(serve, folder):
    """Four threads save 1,000 edits in three rounds; each ends with SIGKILL after another kind of change."""
    log, expected, changes = folder / "edits.jsonl", [], Counter()
    for last in ROUNDS:
        server = serve()
        savers = Savers(server, last)
        savers.wait_for_more(1)
        for change in cycle(ROUNDS):
            done = change == last and len(savers.confirmed) >= CONFIRMED
            changes[change] += 1
            if change == "deleted":
                log.unlink()
            elif change == "cut":
                os.truncate(log, log.stat().st_size * 2 // 3)
            else:
                put(log, STRANGER)
                savers.wait_for_refusals()
                assert log.read_bytes() == STRANGER
                if done:
                    break
                put_back(log)
            savers.wait_for_more(20)
            if done:
                break
        server.process.kill()
        savers.join()
        if last == "replaced":
            assert log.read_bytes() == STRANGER
            put_back(log)
        expected += savers.confirmed
        found = Counter(edit.id for edit in Run.open(folder).edits.edits)
        assert found == Counter(json.loads(line)["id"] for line in whole_lines(log))
        assert set(found.values()) == {1}
        assert set(expected) <= set(found)
        assert not set(found) & set(savers.refused)
        expected += set(found) & set(savers.cut_off)  # written, and killed before the answer
        assert len(found) == len(expected)
    assert len(expected) >= len(ROUNDS) * CONFIRMED > 1_000
    assert min(changes[change] for change in ROUNDS) >= 3


def put_back(log):
    """Do as a refusal says; one that was under way may have left another copy behind."""
    copies = sorted(log.parent.glob("edits-kept-*.jsonl"), key=lambda path: path.stat().st_size)
    copies.pop().rename(log)
    for copy in copies:
        copy.unlink()


def whole_lines(log):
    return [line for line in log.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
