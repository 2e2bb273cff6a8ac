import io
import sys
from types import SimpleNamespace

import pytest

from propos.cli import display
from propos.cli.display import Terminal


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr(display, "PLAIN_LINE_SECONDS", 0.0)


def test_without_a_terminal_long_work_writes_plain_lines_with_time_left(capsys):
    with Terminal(quiet=False) as terminal, terminal.show_task("Reading images") as progress:
        for done in (1_000, 2_000, 4_000):
            progress(done, 4_000)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Reading images: 2,000 of 4,000 (50%), 0 s left",
        "Reading images: 4,000 of 4,000 (100%), 0 s left",
    ]


def test_time_left_does_not_count_getting_ready(capsys, monkeypatch):
    clock = iter([0.0, 100.0, 110.0, 120.0])  # begun, first word of it, then ten seconds for every 25
    monkeypatch.setattr(display, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with Terminal(quiet=False) as terminal, terminal.show_task("Laying out the map") as progress:
        for done in (25, 50, 75):
            progress(done, 100)
    assert capsys.readouterr().out.splitlines() == [
        "Laying out the map: 50 of 100 (50%), 20 s left",
        "Laying out the map: 75 of 100 (75%), 10 s left",
    ]


def test_work_without_a_known_end_says_how_much_is_done(capsys):
    with Terminal(quiet=False) as terminal, terminal.show_task("Looking for files") as progress:
        for done in (0, 2_000, 40_000):
            progress(done, 0)
    assert capsys.readouterr().out.splitlines() == [
        "Looking for files: 2,000 so far",
        "Looking for files: 40,000 so far",
    ]


def test_quiet_work_writes_nothing(capsys):
    with Terminal(quiet=True) as terminal, terminal.show_task("Reading images") as progress:
        progress(0, 2)
        progress(2, 2)
    assert capsys.readouterr().out == ""


def test_short_work_is_not_mentioned(capsys, monkeypatch):
    monkeypatch.setattr(display, "PLAIN_LINE_SECONDS", 60.0)
    with Terminal(quiet=False) as terminal, terminal.show_task("Reading images") as progress:
        progress(0, 2)
        progress(2, 2)
    assert capsys.readouterr().out == ""


def test_one_is_not_called_many(capsys):
    with Terminal(quiet=False) as terminal:
        terminal.expect(epochs=1, seconds=3.0)
        terminal.expect(epochs=20, seconds=3.0)
    assert capsys.readouterr().out.splitlines() == [
        "Training for 1 epoch will take about 3 s.",
        "Training for 20 epochs will take about 3 s.",
    ]


def test_a_run_that_trains_nothing_counts_no_epochs(monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    for epochs, shown, not_shown in ((0, "Finding clusters", "epoch"), (3, "epoch 0/3", "Finding clusters")):
        with Terminal(quiet=False) as terminal:
            terminal.begin(epochs, 5, 0)
        out = capsys.readouterr().out
        assert shown in out
        assert not_shown not in out


def test_a_finished_run_says_how_to_take_its_labels_along(tmp_path, capsys):
    run = tmp_path / "my run"
    measures = {"n_clusters": 2, "smallest_cluster": 1, "largest_cluster": 1}
    with Terminal(quiet=False) as terminal:
        terminal.done(run, SimpleNamespace(history=[{"measures": measures}]), 3.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "Done in 3 s: 2 clusters of 1 image each."
    assert lines[3] == f"As a table: propos export '{run}' --to csv -o labels.csv"
    assert lines[4] == f"In folders: propos export '{run}' --to folders -o sorted"


class Screen(io.StringIO):
    def isatty(self):
        return True


def shown_on_a_screen(monkeypatch, columns):
    """Have a terminal in the place of standard output."""
    for name, value in (("COLUMNS", str(columns)), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", Screen())
    return sys.stdout


def test_a_terminal_gets_sentences_broken_between_words_and_commands_whole(monkeypatch):
    screen = shown_on_a_screen(monkeypatch, 40)
    with Terminal(quiet=False) as terminal:
        terminal.note("they are seen by a network that had seen a million photographs")
        terminal.line("As a table: propos export runs/photographs-1 --to csv -o labels.csv")
    assert [line.rstrip() for line in screen.getvalue().splitlines()] == [
        "they are seen by a network that had seen",
        "a million photographs",
        "As a table: propos export runs/photographs-1 --to csv -o labels.csv",
    ]


def test_work_that_has_not_begun_counts_nothing(monkeypatch):
    screen = shown_on_a_screen(monkeypatch, 80)
    with Terminal(quiet=False) as terminal, terminal.show_task("Laying out the map") as progress:
        terminal.note("now")
        assert "Laying out the map" in screen.getvalue()
        assert "0/?" not in screen.getvalue()
        progress(1_200, 4_000)
    assert "1,200/4,000" in screen.getvalue()
