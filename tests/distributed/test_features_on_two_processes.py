"""Features that two processes compute together: each its share, the same bits as one process, one cache at the end."""

import json
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from helpers import torchrun
from helpers.pretrained import pictures, random_weights
from propos import run as propos_run
from propos.data import clean_caches, list_caches, open_streamed
from propos.data.cache.index import indexed_scan
from propos.data.cache.store import cache_folder
from propos.distributed import join_process_group, rank
from propos.runner.ranks import share_index
from propos.runs import Run
from propos.training.shared_features import shared_features

pytestmark = pytest.mark.full


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Pictures for three batches of features, one of them cut short behind its header."""
    pictures(tmp_path / "photos", each=90, width=40, height=32)
    cut = tmp_path / "photos" / "red" / "3.png"
    cut.write_bytes(cut.read_bytes()[:900])
    random_weights(tmp_path / "weights.pth")
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    return tmp_path


def features_kept():
    (kept,) = (each for each in list_caches() if not each.source.startswith("index of "))
    return kept


def test_each_computes_its_share_and_the_features_are_those_of_one_process(here, monkeypatch):
    flags = ["-k", 3, "--weights", here / "weights.pth", "--no-report", "--quiet", "--device", "cpu"]
    result = torchrun.run_pair("run", here / "photos", *flags, "--out", here / "two")
    assert result.code == 0, result.err
    kept = features_kept()  # the parts are gone
    assert kept.complete
    together = (cache_folder() / kept.key / "images.npy").read_bytes()
    described = json.loads((cache_folder() / kept.key / "meta.json").read_text())
    assert (described["images"], described["tried"]) == (269, 270)
    assert [name for name, _ in described["skipped"]] == ["red/3.png"]
    monkeypatch.setenv("PROPOS_CACHE", str(here / "others"))
    alone = propos_run(
        here / "photos", 3, out=here / "one", weights=here / "weights.pth", quiet=True, report=False, device="cpu"
    )
    kept = features_kept()
    assert (cache_folder() / kept.key / "images.npy").read_bytes() == together
    shared = Run.open(here / "two")
    assert shared.table.images == alone.table.images
    assert shared.embeddings == pytest.approx(alone.embeddings, abs=1e-5)
    assert np.array_equal(shared.table.cluster, alone.table.cluster)


KILLS, WIDTH, EACH = 20, 8, 4  # EACH: images of a batch


def compute(folder, out):
    """Compute features of pictures together with another process; the first one writes what the cache then holds."""
    with join_process_group():
        source = open_streamed(folder, side=32)
        pixels = source.channels * source.height * source.width
        weights = np.random.default_rng(0).standard_normal((pixels, WIDTH)).astype(np.float32)
        batches = np.split(np.arange(len(source)), range(EACH, len(source), EACH))

        def see(positions):
            return source.batch(positions).reshape(len(positions), -1).astype(np.float32) @ weights

        found = shared_features(source, "linear", WIDTH, batches, see, lambda done, total: None)
        if rank() == 0:
            np.save(out, found.rows(np.arange(len(source) - len(found.skipped))))
        source.close()


def seconds_used(pid):
    """Return the processor seconds of a process, or more than any uses if it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return float("inf")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def killed_at(moment, *arguments):
    """Kill both processes once the first has used so many processor seconds; return whether that was before the end."""
    pair = torchrun.Pair(compute, *arguments)
    while seconds_used(pair.processes[0].pid) < moment and pair.poll() is None:
        time.sleep(0.001)
    early = pair.poll() is None
    for process in pair.processes:
        process.kill()
    pair.communicate()
    return early


def test_processes_killed_at_random_moments_continue_and_end_with_the_same_bits(here):
    assert torchrun.run_pair(here / "photos", here / "whole.npy", function=compute).code == 0
    expected = np.load(here / "whole.npy")
    assert len(expected) == 269
    whole = seconds_of_a_whole_run(here)
    draw, killed, continued = random.Random(0), 0, 0
    while killed < KILLS:
        clean_caches()
        early = killed_at(draw.uniform(0, whole), here / "photos", here / "again.npy")
        killed += early
        kept = {each.source for each in list_caches()}
        continued += early and len(kept) > 0
        result = torchrun.run_pair(here / "photos", here / "again.npy", function=compute)
        assert (result.code, result.err) == (0, "")
        assert np.load(here / "again.npy").tobytes() == expected.tobytes()
    assert continued > 0  # some had stored a part of their share


def seconds_of_a_whole_run(here):
    """Return the processor seconds of the first of two processes that are not killed."""
    clean_caches()
    pair = torchrun.Pair(compute, here / "photos", here / "again.npy")
    used = 0.0
    while pair.poll() is None:
        now = seconds_used(pair.processes[0].pid)
        used = now if now < float("inf") else used
        time.sleep(0.001)
    pair.communicate()
    return used


def scan_on_machines_of_their_own(folder, caches, opened):
    """Scan a folder on the first machine, then on the other one, which writes down what it opened below the folder."""
    with join_process_group():
        os.environ |= {"PROPOS_CACHE": f"{caches}/{rank()}", "LOCAL_RANK": "0"}
        if rank() == 0:
            indexed_scan(folder)
        share_index(folder)
        names = []
        sys.addaudithook(lambda event, given: names.append(str(given[0])) if event == "open" else None)
        found = indexed_scan(folder)
        if rank() == 1:
            below = [name for name in names if name.startswith(folder)]
            Path(opened).write_text(json.dumps([found.images.identity, len(found.skipped), below]))


def test_a_machine_without_an_index_opens_no_file_to_get_one(here):
    one = indexed_scan(here / "photos")
    time.sleep(2.1)  # files that changed less than two seconds before a scan are opened again
    places = here / "photos", here / "machines", here / "opened"
    assert torchrun.run_pair(*places, function=scan_on_machines_of_their_own).code == 0
    assert json.loads(places[2].read_text()) == [one.images.identity, 0, []]


def test_two_machines_without_a_common_cache_each_get_the_features_of_one_process(here, monkeypatch):
    flags = ["-k", 3, "--weights", here / "weights.pth", "--no-report", "--quiet", "--device", "cpu"]
    script = ["-m", "propos", "run", here / "photos", *flags, "--out", here / "two"]
    place = f"--rdzv-endpoint=127.0.0.1:{torchrun.port()}", "--rdzv-backend=c10d", "--local-addr=127.0.0.1"
    machines = []
    for name in ("one", "other"):
        monkeypatch.setenv("PROPOS_CACHE", str(here / name))
        machines.append(torchrun.start(*script, options=("--nnodes=2", *place), processes=1))
    ended = [torchrun.finish(machine) for machine in machines]
    assert [result.code for result in ended] == [0, 0], [result.err for result in ended]
    monkeypatch.setenv("PROPOS_CACHE", str(here / "alone"))
    alone = propos_run(
        here / "photos", 3, out=here / "run", weights=here / "weights.pth", quiet=True, report=False, device="cpu"
    )
    held = []
    for name in ("alone", "one", "other"):
        monkeypatch.setenv("PROPOS_CACHE", str(here / name))
        held.append((cache_folder() / features_kept().key / "images.npy").read_bytes())
    assert held[0] == held[1] == held[2]
    assert np.array_equal(Run.open(here / "two").table.cluster, alone.table.cluster)
