"""The log of edits: what is taken in, what is refused, and what is on the disk when it is confirmed."""

import json
import os
import signal
import subprocess
import sys

import pytest

from propos.common.errors import InputError
from propos.runs import EditLog, parse_edits

IDS = range(3)


def line(op, number=1, **keys):
    return json.dumps({"v": 1, "id": f"e{number}", "op": op, **keys}) + "\n"


def numbered(*lines):
    edits, torn = parse_edits("".join(lines).encode(), "given")
    assert torn == b""
    return edits


def written(tmp_path, *lines, tail=b""):
    (tmp_path / "edits.jsonl").write_bytes("".join(lines).encode() + tail)
    return tmp_path


RENAME = line("rename", cluster=1, name="cats")


def test_a_run_nobody_corrected_has_no_edits_and_no_file(tmp_path):
    log = EditLog(tmp_path, IDS)
    assert (log.edits, log.note) == ([], None)
    assert list(tmp_path.iterdir()) == []


def test_what_was_appended_is_read_again(tmp_path):
    lines = [
        line("rename", 1, cluster=1, name="cats"),
        line("rename", 2, cluster=1, name=None),
        line("describe", 3, cluster=1, text="all of them\nasleep"),
        line("split", 4, images=["b.png"], into=7, at="2026-01-02T03:04:05Z"),
        line("merge", 5, clusters=[0, 7], into=2),
        line("move", 6, images=["a.png"], into=7),
        line("junk", 7, cluster=2),
        line("confirm", 8, images=["a.png", "b.png"]),
        line("undo", 9, edit="e5"),
        line("redo", 10, edit="e5"),
    ]
    log = EditLog(tmp_path, IDS)
    assert len(log.append(numbered(*lines[:4]), "given")) == 4
    assert len(log.append(numbered(*lines[4:]), "given")) == 6
    again = EditLog(tmp_path, IDS)
    assert again.edits == log.edits == [edit for _, edit in numbered(*lines)]
    plain = [json.loads(text) for text in (tmp_path / "edits.jsonl").read_text().splitlines()]
    assert [{key: value for key, value in each.items() if key != "at" or value} for each in plain] == [
        json.loads(text) for text in lines
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["edits.jsonl"]


def test_an_edit_that_comes_again_is_taken_in_once(tmp_path):
    log = EditLog(tmp_path, IDS)
    assert len(log.append(numbered(RENAME), "given")) == 1
    assert log.append(numbered(RENAME), "given") == []
    assert len(EditLog(tmp_path, IDS).edits) == 1


REFUSED = {
    "unknown operation": (
        line("paint", cluster=1),
        "line 1: op = 'paint': unknown operation: choose one of rename, describe",
    ),
    "no operation": ('{"v": 1, "id": "a"}\n', "line 1: op = None: unknown operation"),
    "newer version": (RENAME.replace('"v": 1', '"v": 2'), "line 1: was written by a newer propos (edits 2, this one"),
    "no version": ('{"id": "a", "op": "undo", "edit": "b"}\n', "line 1: undo: key v is missing"),
    "unknown cluster": (RENAME + line("merge", 2, clusters=[0, 9], into=1), "line 2: merge: unknown cluster 9"),
    "cluster in use": (line("split", images=["a"], into=2), "line 1: split: cluster 2 already exists: use 3"),
    "unknown edit": (line("undo", edit="e9"), "line 1: undo: unknown edit 'e9': only earlier edits can be named"),
    "undo of undo": (
        RENAME + line("undo", 2, edit="e1") + line("undo", 3, edit="e2"),
        "line 3: undo: 'e2' is itself an undo: name the edit that it refers to",
    ),
    "id used twice": (RENAME + line("junk", 1, cluster=1), "line 2: id = 'e1' already belongs to another edit"),
    "image by number": (line("move", images=[4], into=1), "line 1: move: images.0 = 4: Input should be a valid string"),
    "no images": (line("move", images=[], into=1), "line 1: move: images = []: Tuple should have at least 1 item"),
    "missing key": (line("rename", cluster=1), "line 1: rename: key name is missing"),
    "strange key": (line("undo", edit="e1", why="x"), "line 1: undo: unknown key why"),
    "text for a number": (line("rename", cluster="1", name="a"), "line 1: rename: cluster = '1': Input should be"),
    "a name of two lines": (line("rename", cluster=1, name="a\nb"), "line 1: rename: name = 'a\\nb': a name is one"),
    "images and cluster": (line("junk", cluster=1, images=["a"]), "give either images or a cluster"),
    "neither": (line("confirm"), "give either images or a cluster"),
    "no JSON": ("rename 1 cats\n", "line 1: cannot be read: not an edit in JSON"),
    "a list": ("[]\n", "line 1: cannot be read: not a table of keys"),
    "nested": ("[" * 100_000 + "\n", "line 1: cannot be read: not an edit in JSON"),
    "not UTF-8": (None, "line 1: cannot be read: not an edit in JSON"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_in_one_line_and_changes_nothing(tmp_path, case):
    text, words = REFUSED[case]
    content = b'{"v": 1, "id": "\xff"}\n' if text is None else text.encode()
    (tmp_path / "edits.jsonl").write_bytes(content)
    with pytest.raises(InputError) as caught:
        EditLog(tmp_path, IDS)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'edits.jsonl'}: ")
    assert "\n" not in str(caught.value)
    (tmp_path / "edits.jsonl").unlink()
    log = EditLog(tmp_path, IDS)
    with pytest.raises(InputError):
        log.append(parse_edits(content, "given")[0], "given")
    assert log.edits == []
    assert not (tmp_path / "edits.jsonl").exists()
    assert len(log.append(numbered(RENAME), "given")) == 1  # nothing of the refused is remembered


def test_a_file_of_more_than_a_gigabyte_is_refused_unread(tmp_path):
    with (tmp_path / "edits.jsonl").open("wb") as file:
        file.truncate(1_000_000_001)
    with pytest.raises(InputError, match="it is larger than 1,000,000,000 bytes"):
        EditLog(tmp_path, IDS)


def test_what_does_not_fit_is_refused_and_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr("propos.runs.edit_log.MOST_BYTES", 10_000)
    (tmp_path / "edits.jsonl").write_bytes(b" " * 9_800 + b"\n")
    log, split = EditLog(tmp_path, IDS), line("split", 1, images=["a"], into=7)
    with pytest.raises(InputError, match="would be larger than 10,000 bytes with it"):
        log.append(numbered(split, line("describe", 2, cluster=7, text="x" * 1_000)), "given")
    assert log.edits == []
    assert len(log.append(numbered(split), "given")) == 1  # neither its id nor its cluster was taken


@pytest.mark.parametrize("cut", [1, 20, 40])
def test_a_torn_last_line_is_left_out_with_a_note_and_the_next_edit_stands_alone(tmp_path, cut):
    torn = line("describe", 2, cluster=1, text="ö" * 20).encode()[:cut]
    log = EditLog(written(tmp_path, RENAME, tail=torn), IDS)
    assert [edit.id for edit in log.edits] == ["e1"]
    assert log.note is not None
    assert f"ignoring its incomplete last line ({cut} bytes" in log.note
    log.append(numbered(line("junk", 3, cluster=2)), "given")
    assert log.note is None
    again = EditLog(tmp_path, IDS)
    assert ([edit.id for edit in again.edits], again.note) == (["e1", "e3"], None)


def test_a_last_line_that_only_lacks_its_end_counts(tmp_path):
    log = EditLog(written(tmp_path, RENAME.rstrip("\n")), IDS)
    assert ([edit.id for edit in log.edits], log.note) == (["e1"], None)
    log.append(numbered(line("junk", 3, cluster=2)), "given")
    assert [edit.id for edit in EditLog(tmp_path, IDS).edits] == ["e1", "e3"]


def test_blank_lines_and_line_ends_of_windows_count_as_lines_only(tmp_path):
    text = RENAME.replace("\n", "\r\n") + "\r\n" + line("junk", 2, cluster=9)
    with pytest.raises(InputError, match="line 3: junk: unknown cluster 9"):
        EditLog(written(tmp_path, text), IDS)


def test_two_writers_see_each_other(tmp_path):
    one, two = EditLog(tmp_path, IDS), EditLog(tmp_path, IDS)
    one.append(numbered(line("split", 1, images=["a"], into=3)), "given")
    two.append(numbered(line("split", 2, images=["b"], into=4)), "given")
    one.catch_up()
    assert one.edits == two.edits == EditLog(tmp_path, IDS).edits


UNSEEN = [
    line("split", 2, images=["b"], into=3),
    line("split", 3, images=["c"], into=4),
    line("rename", 4, cluster=3, name="b"),
    line("describe", 5, cluster=4, text="c"),
    line("move", 6, images=["d"], into=4),
    line("merge", 7, clusters=[1, 3], into=4),
    line("junk", 8, cluster=3),
    line("confirm", 9, cluster=4),
    line("undo", 10, edit="e2"),
    line("rename", 11, cluster=2, name="as it was"),
]
SEEN = [
    line("split", 2, images=["b"], into=4),
    line("split", 3, images=["c"], into=5),
    line("rename", 4, cluster=4, name="b"),
    line("describe", 5, cluster=5, text="c"),
    line("move", 6, images=["d"], into=5),
    line("merge", 7, clusters=[1, 4], into=5),
    line("junk", 8, cluster=4),
    line("confirm", 9, cluster=5),
    line("undo", 10, edit="e2"),
    line("rename", 11, cluster=2, name="as it was"),
]


def test_what_was_split_off_under_an_id_that_was_taken_since_gets_a_free_one(tmp_path):
    """The second of two who did not see each other: each of its edits means its own cluster."""
    log = EditLog(tmp_path, IDS)
    log.append(numbered(line("split", 1, images=["a"], into=3)), "given")
    meant = [edit for _, edit in numbered(*SEEN)]
    assert log.append(numbered(*UNSEEN[:2]), "given") == meant[:2]
    assert log.append(numbered(*UNSEEN), "given") == meant[2:]  # what comes again is known under its new id
    assert log.append(numbered(*UNSEEN), "given") == []
    assert EditLog(tmp_path, IDS).edits[1:] == meant


def test_a_free_id_is_found_where_the_largest_is_taken(tmp_path):
    log = EditLog(tmp_path, IDS)
    log.append(numbered(line("split", 1, images=["a"], into=2**31 - 1)), "given")
    (split,) = log.append(numbered(line("split", 2, images=["b"], into=2**31 - 1)), "given")
    assert split.into == 3
    assert len(EditLog(tmp_path, IDS).edits) == 2


def test_one_file_that_splits_twice_into_one_cluster_is_refused(tmp_path):
    log = EditLog(tmp_path, IDS)
    log.append(numbered(line("split", 1, images=["a"], into=3)), "given")
    twice = [line("split", 2, images=["b"], into=3), line("split", 3, images=["c"], into=3)]
    with pytest.raises(InputError, match="line 2: split: cluster 3 was already split off: use another id"):
        log.append(numbered(*twice), "given")
    (split,) = log.append(numbered(twice[0]), "given")
    assert split.into == 4  # nothing of the refused is remembered


WRITER = """
import json, pathlib, sys
from propos.runs import EditLog, parse_edits
log = EditLog(pathlib.Path(sys.argv[1]), range(3))
for number in range(100_000):
    text = json.dumps({"v": 1, "id": f"{sys.argv[2]}-{number}", "op": "describe", "cluster": 1, "text": "x" * 2_000})
    log.append(parse_edits(text.encode(), "given")[0], "given")
    print(number, flush=True)
"""


def test_writers_killed_in_a_burst_lose_nothing_they_confirmed(tmp_path):
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in ("a", "b")]
    confirmed = {}
    for name, writer in zip(("a", "b"), writers, strict=True):
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < 30:
            pass
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split()
        confirmed[name] = int(rest[-1]) if rest else 30
        writer.wait()
        writer.stdout.close()
    ids = [edit.id for edit in EditLog(tmp_path, IDS).edits]
    for name, last in confirmed.items():
        own = [each for each in ids if each.startswith(f"{name}-")]
        assert own[: last + 1] == [f"{name}-{number}" for number in range(last + 1)]
        assert len(own) <= last + 2  # what was written and not yet confirmed
