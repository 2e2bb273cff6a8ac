"""The scripts that hold a run's edits: one, or several if the log is long."""

import json
import re

import pytest

from propos.review.report import edits

LINES = [json.dumps({"v": 1, "id": f"e{number}", "op": "undo", "edit": "x" * (number % 9)}) for number in range(200)]


def log(count):
    return "".join(f"{line}\n" for line in LINES[:count]).encode()


def texts(scripts):
    """Return the lines of each script in the order in which the page reads them, and the names of all but the last."""
    last = b"".join(scripts["edits.js"]).decode()
    named = re.search(r"window\.PROPOS_EARLIER_EDITS=(\[.*\]);", last)
    names = [] if named is None else json.loads(named[1])
    held = [b"".join(scripts[name]).decode() for name in (*names, "edits.js")]
    return [re.search(r"String\.raw`([^`]*)`", script)[1] for script in held], names


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(edits, "PART", 1_000)


def test_a_short_log_is_one_script():
    assert edits.edits_scripts(b"") == {"edits.js": (b"window.PROPOS_EDITS=String.raw`", b"", b"`;\n")}
    assert [*edits.edits_scripts(log(5), b"{}\n")] == ["edits.js"]


def test_a_long_log_is_several_scripts_of_whole_lines():
    held, names = texts(edits.edits_scripts(log(200)))
    assert names == [f"edits-{number:04d}.js" for number in range(1, len(held))]
    assert len(held) > 9
    assert all(len(part) <= 1_000 and part.endswith("\n") for part in held)
    assert "".join(held).encode() == log(200)


def test_a_log_that_grows_changes_its_last_script_alone():
    before = edits.edits_scripts(log(100))
    for count in range(101, 130):
        now = edits.edits_scripts(log(count))
        assert all(now[name] == script for name, script in before.items() if name != "edits.js")
        before = now


def test_a_line_longer_than_a_part_stays_whole():
    long = json.dumps({"images": ["y" * 5_000]})
    lines = f"{LINES[0]}\n{long}\n{LINES[1]}\n".encode()
    held, _ = texts(edits.edits_scripts(lines))
    assert held == [f"{LINES[0]}\n", f"{long}\n", f"{LINES[1]}\n"]
    assert texts(edits.edits_scripts(long.encode()))[0] == [long]  # its line break is not written yet
