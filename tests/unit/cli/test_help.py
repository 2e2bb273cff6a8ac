"""What --help says fits a terminal of 80 columns and reads as what can be typed."""

import pytest
from typer.main import get_command

from helpers.command import command
from propos.cli.app import app


def commands(group, words=()):
    yield words
    for name, each in getattr(group, "commands", {}).items():
        yield from commands(each, (*words, name))


EVERY = list(commands(get_command(app)))


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def test_every_command_is_looked_at():
    assert {(), ("run",), ("recipes", "show"), ("cache", "clean")} <= set(EVERY)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_is_narrow_and_whole(capsys, words):
    said = command(capsys, *words, "--help")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= 80
    cut = [line for line in said.out.splitlines()[1:] if line.endswith("...")]
    assert cut == []


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_what_takes_no_value_is_shown_without_one(capsys, words):
    assert "bool" not in command(capsys, *words, "--help").out


def test_what_takes_a_value_says_which(capsys):
    lines = [line.split("  ") for line in command(capsys, "run", "--help").out.splitlines()]
    shown = {line[1] for line in lines if len(line) > 1}
    assert {"--resume", "--quiet", "--from RUN", "--seed <int>", "-k K | A..B", "-h, --help"} <= shown
