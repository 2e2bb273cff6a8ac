"""Streams that are closed, go away or know few letters, and names that would steer a terminal."""

import io
import json
import os
import subprocess
import sys

import pytest

from helpers.awkward import picture
from helpers.command import start_anew
from helpers.hold import PATIENCE
from helpers.quick import quick_cases
from helpers.small import QUICK, as_flags
from propos.cli.display import Terminal
from propos.cli.streams import TolerantStream, make_streams_safe, printable, say, say_named


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("caf\u00e9 8\u00d78", "caf\u00e9 8\u00d78"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("a\x9b31m", "a\\x9b31m"),
        ("gpj.\u202etxt", "gpj.\\u202etxt"),
        ("two\nlines\tapart", "two\nlines\tapart"),
        ("over\rwritten", "over\\rwritten"),
    ],
)
def test_what_would_steer_a_terminal_is_written_as_an_escape(text, shown):
    assert printable(text) == shown


@pytest.mark.parametrize(("said", "kept"), [("9" * 5000, None), ("wide", None), ("", None), ("120", "120")])
def test_a_width_that_no_terminal_has_is_not_believed(monkeypatch, said, kept):
    monkeypatch.setenv("COLUMNS", said)
    make_streams_safe()
    assert os.environ.get("COLUMNS") == kept


def test_a_long_line_of_a_list_is_wrapped_on_a_terminal_only(monkeypatch, capsys):
    text = "été à la plage.jpg: neither a picture 🎉 nor a film"
    say_named("skipped", text)
    assert capsys.readouterr().out == f"skipped        {text}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    say_named("skipped", text)
    assert capsys.readouterr().out.splitlines() == [
        "skipped        été à la plage.jpg:",
        "               neither a picture 🎉 nor",
        "               a film",
    ]


def test_a_stream_whose_reader_has_gone_takes_everything():
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    stream = TolerantStream(Gone())
    assert stream.write("lost") == 4
    stream.flush()
    kept = io.StringIO()
    TolerantStream(kept).write("kept")
    assert kept.getvalue() == "kept"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
@pytest.mark.parametrize("arguments", quick_cases("recipes", rest=["--version", ""]))
def test_closed_streams_are_no_fault(closed, arguments):
    shell = ["bash", "-c", f'"{sys.executable}" -m propos {arguments} {closed}']
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.full
def test_a_closed_stream_takes_letters_that_are_none():
    shell = ["bash", "-c", f"'{sys.executable}' -m propos run digits --recipe $'\\x80' 2>&-"]
    assert subprocess.run(shell, check=False).returncode == 2


@pytest.mark.full
@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_images_are_decoded_whichever_streams_are_closed(tmp_path, closed):
    for number in range(3):
        picture(12, 12, seed=number).save(tmp_path / f"{number}.png")
    inspect = f'"{sys.executable}" -m propos inspect "{tmp_path}" -k 2 --views "{tmp_path}/views.png" {closed}'
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    done = subprocess.run(["bash", "-c", inspect], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "views.png").exists()


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # the latter is Python's choice where LANG=C
def test_a_terminal_of_few_letters_gets_those_it_has(monkeypatch, errors):
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", errors=errors))
    make_streams_safe()
    with Terminal(quiet=False) as terminal:
        terminal.note("results: 8\u00d78")
    say("\u2026 and \u00e9t\u00e9.jpg")
    assert written.getvalue() == b"results: 8x8\n... and \\xe9t\\xe9.jpg\n"


@pytest.mark.full
def test_training_continues_after_the_reader_has_gone(tmp_path):
    process = start_anew("run", "digits", *as_flags(QUICK), "--no-report", "--out", tmp_path / "run")
    assert process.stdout.readline()
    process.stdout.close()
    with process.stderr as stderr:
        err = stderr.read()
    assert process.wait(timeout=PATIENCE) == 0, err
    assert err == ""
    assert json.loads((tmp_path / "run" / "run.json").read_text())["status"] == "finished"


@pytest.mark.full
def test_a_command_whose_reader_has_seen_enough_ends_well():
    shell = f'set -o pipefail; "{sys.executable}" -m propos recipes show digits | head -1'
    for _ in range(3):
        done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_a_command_whose_reader_has_gone_before_it_speaks_ends_as_well():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        command = [sys.executable, "-m", "propos", "recipes", "show", "digits"]
        done = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
