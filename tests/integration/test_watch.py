"""`propos watch`: new files of a folder are taken into a finished run, each once, whatever happens to them."""

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.command import command
from helpers.served import Served, serving
from propos.review.report import is_current, write_report
from propos.review.server import Arriving
from propos.runs import Run

PIXELS = (load_digits().images * 15.9).astype(np.uint8)


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Return a run of four kinds of digits, clustered by their pixels."""
    root = tmp_path_factory.mktemp("watched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PROPOS_CACHE", str(root / "cache"))
        labels = load_digits().target
        for number in np.flatnonzero(labels[:900] < 4).tolist():
            save(root / "photos", number)
        arguments = (
            str(root / "photos"),
            "-k",
            "4",
            "--method",
            "kmeans-pixels",
            "-o",
            str(root / "run"),
            "--no-report",
        )
        subprocess.run([sys.executable, "-m", "propos", "run", *arguments], check=True, capture_output=True)
        yield root / "run"


@pytest.fixture
def run(digits, tmp_path):
    return shutil.copytree(digits, tmp_path / "run")


def save(folder, number, name=None):
    folder.mkdir(exist_ok=True)
    path = folder / (name or f"{number:04d}.png")
    Image.fromarray(PIXELS[number]).save(path)
    return path


def taken(run):
    return Run.open(run / "arrivals")


def watch_once(capsys, run, folder):
    result = command(capsys, "watch", folder, "--into", run, "--once")
    assert result.code == 0, result.err
    return result


def test_new_images_are_assigned_as_predict_does_and_reviewed_as_a_run(run, tmp_path, capsys):
    (run / "edits.jsonl").write_text(
        '{"v": 1, "id": "a", "op": "rename", "cluster": 2, "name": "twos"}\n'
        '{"v": 1, "id": "b", "op": "merge", "clusters": [0], "into": 1}\n'
    )
    for number in range(900, 930):
        save(tmp_path / "new", number)
    result = watch_once(capsys, run, tmp_path / "new")
    assert result.out.startswith("30 new images: ")
    assert sum(map(int, re.findall(r"(\d+) (?:rejected|in (?!all))", result.out))) == 30
    assert command(capsys, "predict", run, tmp_path / "new", "-o", tmp_path / "new.csv").code == 0
    arrived = taken(run)
    table = arrived.corrected.table
    lines = (tmp_path / "new.csv").read_text().splitlines()[1:]
    expected = {line.split(",")[1].strip('"'): int(line.split(",")[2]) for line in lines}
    assert dict(zip(table.images, table.cluster.tolist(), strict=True)) == expected
    assert arrived.corrected.names() == {1: None, 2: "twos", 3: None}
    assert command(capsys, "report", run / "arrivals").code == 0
    assert (run / "arrivals" / "report" / "sheet-0000.png").is_file()  # its images are found
    assert is_current(arrived)
    save(tmp_path / "new", 930)
    watch_once(capsys, run, tmp_path / "new")
    assert not is_current(taken(run))  # propos open writes its page again


def test_ctrl_c_ends_it_and_says_where_to_review(run, tmp_path, capsys, monkeypatch):
    (tmp_path / "new").mkdir()
    slept = []

    def interrupted(seconds):
        if slept:
            raise KeyboardInterrupt
        slept.append(seconds)

    monkeypatch.setattr(time, "sleep", interrupted)
    assert command(capsys, "watch", tmp_path / "new", "--into", run).out == "No new images.\n"
    save(tmp_path / "new", 900)
    slept.clear()
    result = command(capsys, "watch", tmp_path / "new", "--into", run, "--every", 7.25)
    assert (result.code, result.err, slept) == (0, "", [7.25])
    assert result.out.startswith("1 new image: 1 rejected (1 in all)")
    assert result.out.endswith(f"\nReview them: propos open {run / 'arrivals'}\n")


def test_images_are_taken_once_after_changes_renames_and_deletions(run, tmp_path, capsys):
    new = tmp_path / "new"
    for number in range(900, 910):
        save(new, number)
    watch_once(capsys, run, new)
    watch_once(capsys, run, new)
    assert len((run / "arrivals" / "taken.jsonl").read_text().splitlines()) == 10
    (new / "0900.png").rename(new / "renamed.png")
    (new / "0901.png").unlink()
    save(new, 950, "0902.png")
    (new / "half.png").write_bytes((new / "0903.png").read_bytes()[:60])
    watch_once(capsys, run, new)
    table = taken(run).table
    assert sorted(table.images) == [*(f"{number:04d}.png" for number in range(902, 910)), "renamed.png"]
    assert len((run / "arrivals" / "taken.jsonl").read_text().splitlines()) == 12
    (new / "half.png").write_bytes((new / "0903.png").read_bytes())
    watch_once(capsys, run, new)
    assert "half.png" in taken(run).table.images


def test_what_a_kill_left_behind_is_removed(run, tmp_path, capsys):
    for number in range(900, 906):
        save(tmp_path / "new", number)
    watch_once(capsys, run, tmp_path / "new")
    log, vectors = (run / "arrivals" / name for name in ("taken.jsonl", "taken.f32"))
    whole, size = log.read_bytes(), vectors.stat().st_size
    log.write_bytes(whole[:-20])
    vectors.write_bytes(vectors.read_bytes() + b"torn")
    watch_once(capsys, run, tmp_path / "new")
    # The last image was computed again, now in a batch of its own: the same up to rounding.
    assert log.read_bytes().splitlines()[:-1] == whole.splitlines()[:-1]
    assert log.read_bytes().splitlines()[-1].split(b'"cluster"')[0] == whole.splitlines()[-1].split(b'"cluster"')[0]
    assert vectors.stat().st_size == size
    assert len(taken(run).table.images) == 6


def test_images_of_other_kinds_are_proposed_as_new_clusters(run, tmp_path, capsys):
    labels = load_digits().target
    for number in np.flatnonzero((labels == 6) | (labels == 7) | (labels < 4))[-150:].tolist():
        save(tmp_path / "new", number)
    result = command(capsys, "watch", tmp_path / "new", "--into", run, "--once", "--reject", "5%")
    assert " rejected (" in result.out
    proposed = [proposal for proposal, _ in taken(run).proposals()]
    assert proposed
    assert all(proposal.kind == "new-kind" for proposal in proposed)
    kinds = [labels[int(name.removesuffix(".png"))] for name in proposed[0].edit.images]
    assert np.mean(np.array(kinds) == np.bincount(kinds).argmax()) > 0.8
    assert command(capsys, "proposals", run / "arrivals", "--accept", proposed[0].id).code == 0
    table = taken(run).corrected.table
    assert {table.images[row] for row in np.flatnonzero(table.cluster == proposed[0].edit.into)} == set(
        proposed[0].edit.images
    )


def ask(address, path=""):
    try:
        with urllib.request.urlopen(f"{address}{path}") as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def test_a_served_run_shows_the_images_that_came_when_their_page_is_loaded(run, tmp_path, capsys):
    write_report(Run.open(run))
    with serving(run, Arriving(run / "arrivals")) as address:
        assert ask(address, "arrivals/")[0] == 404  # nothing has come yet
        save(tmp_path / "new", 900)
        watch_once(capsys, run, tmp_path / "new")
        status, page = ask(address, "arrivals/")
        assert status == 200
        assert str(run / "arrivals").encode() in page
        assert b'"images":{"count":1,' in ask(address, "arrivals/data.js")[1]
        save(tmp_path / "new", 901)
        watch_once(capsys, run, tmp_path / "new")
        assert b'"images":{"count":1,' in ask(address, "arrivals/data.js")[1]  # as it was loaded
        assert ask(address, "arrivals/")[0] == 200
        assert b'"images":{"count":2,' in ask(address, "arrivals/data.js")[1]
        assert b'"images":{"count":2,' not in ask(address, "data.js")[1]


class WatchingServer(Served):
    def command(self, folder):
        return "open", folder, "--watch", folder.parent / "new"


@pytest.mark.full
def test_an_open_page_takes_in_new_images(run, tmp_path):
    (tmp_path / "new").mkdir()
    write_report(Run.open(run))
    server = WatchingServer(run)
    try:
        save(tmp_path / "new", 900)
        while "(1 in all)" not in server.process.said():
            assert server.process.poll() is None, server.process.communicate()
            time.sleep(0.05)
        assert server.ask("arrivals/")[0] == 200
        edit = {"v": 1, "id": "x", "op": "junk", "images": ["0900.png"]}
        since = len(Run.open(run / "arrivals").edits.edits)
        assert server.ask(f"arrivals/api/edits?since={since}&last=", "POST", json.dumps(edit).encode())[0] == 200
    finally:
        server.end()
    assert server.process.returncode == 0, server.complaint
    assert Run.open(run / "arrivals").corrected.junk.tolist() == [True]
    assert not (run / "edits.jsonl").exists()


@pytest.mark.full
def test_two_thousand_files_in_bursts_are_taken_once_by_a_watch_that_is_killed_ten_times(run, tmp_path):
    rng, new = random.Random(0), tmp_path / "new"
    new.mkdir()
    arguments = ("watch", str(new), "--into", str(run), "--every", "0.1")
    arrived = 0

    def burst(most):
        nonlocal arrived
        for _ in range(min(most, 2_000 - arrived)):
            part = save(tmp_path / "parts", rng.randrange(len(PIXELS)), "part.png")
            with part.open("ab") as file:
                file.write(arrived.to_bytes(4, "big"))  # no two files are the same
            part.rename(new / f"{arrived:04d}.png")
            arrived += 1

    for _ in range(10):
        process = subprocess.Popen([sys.executable, "-m", "propos", *arguments], stdout=subprocess.PIPE, text=True)
        for _ in range(rng.randint(1, 3)):
            burst(rng.randint(20, 120))
            process.stdout.readline()  # a batch was taken in
        burst(rng.randint(20, 120))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    burst(2_000)
    subprocess.run([sys.executable, "-m", "propos", *arguments, "--once"], check=True)
    names = [f"{number:04d}.png" for number in range(2_000)]
    assert taken(run).table.images == names
    lines = (run / "arrivals" / "taken.jsonl").read_text().splitlines()
    assert len(lines) == 2_000


def test_what_cannot_be_watched_is_refused_in_one_line(run, tmp_path, capsys):
    for arguments, words in (
        ((tmp_path / "none", "--into", run), "not a folder"),
        ((tmp_path, "--into", tmp_path / "none"), "none"),
        ((tmp_path, "--into", run, "--reject", "90%"), "such as 1%"),
    ):
        result = command(capsys, "watch", *arguments)
        assert (result.code, result.err.count("\n")) == (2, 1)
        assert words in result.err
