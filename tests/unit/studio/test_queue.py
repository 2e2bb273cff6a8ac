"""The queue of work: what is kept, what is not understood, and commands made of checked parts alone."""

import json

import pytest
from pydantic import ValidationError

from propos.review.studio.queue import FILE, Queue
from propos.review.studio.work import Work


def work(**changes):
    return Work(**{"id": "abcdefgh", "kind": "run", "run": "photos-1", "source": "/photos", **changes})


def test_a_queue_survives_and_entries_that_are_not_understood_are_left_out(tmp_path):
    queue = Queue(tmp_path, tmp_path / "runs")
    queue.add(work(clusters="5..40"))
    known = json.loads((tmp_path / FILE).read_text())
    hostile = [
        {**known[0], "id": "../../evil"},
        {**known[0], "steps": [["rm", "-rf"]]},
        {**known[0], "clusters": "-k"},
        3,
    ]
    (tmp_path / FILE).write_text(json.dumps([*hostile, *known]))
    assert Queue(tmp_path, tmp_path / "runs").all == queue.all
    (tmp_path / FILE).write_text("[" * 100_000)
    assert Queue(tmp_path, tmp_path / "runs").all == []


def test_what_is_added_twice_is_there_once(tmp_path):
    queue = Queue(tmp_path, tmp_path / "runs")
    assert queue.add(work()) is queue.add(work(clusters="3"))
    assert len(queue.all) == 1


@pytest.mark.parametrize("clusters", ["-1", "10; rm", "--resume", "1..2..3", "", "１０"])
def test_a_number_of_clusters_is_a_number_or_a_range(clusters):
    with pytest.raises(ValidationError):
        work(clusters=clusters)


def test_commands_follow_what_is_there(tmp_path):
    runs = tmp_path / "runs"
    folder = runs / "photos-1"
    folder.mkdir(parents=True)
    new = work(source="/a \\xff", clusters="8")
    assert new.command(runs) == ["run", "/a \udcff", "--out", str(folder), "-k", "8"]
    (folder / "run.json").touch()
    assert new.command(runs) == ["run", "--resume", "--out", str(folder)]
    learnt = work(earlier="first", step=1)
    assert learnt.command(runs) == ["report", str(folder)]  # the earlier run is in the trash by now
    (runs / "first").mkdir()
    (runs / "first" / "run.json").touch()
    assert learnt.command(runs) == ["report", str(folder), "--against", str(runs / "first")]
    learnt.step = 2
    assert learnt.command(runs) is None
