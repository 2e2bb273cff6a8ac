"""Completion of commands and options, installed into a home of its own and asked as each shell asks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROPOS = Path(sys.executable).with_name("propos")
HOMES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/propos.fish"}


def ask(home, *words, **more):
    path = f"{PROPOS.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(home), "PATH": path, **more}
    return subprocess.run(list(map(str, words)), env=environment, cwd=home, capture_output=True, text=True)


@pytest.mark.parametrize("shell", HOMES)
def test_completion_is_installed_where_the_shell_looks(tmp_path, shell):
    # Without it the shell is found by who started the command, and no test is started by all of them.
    named = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = ask(tmp_path, PROPOS, "--install-completion", shell, **named)
    assert done.returncode == 0, done.stderr
    assert f"{shell} completion installed" in done.stdout
    assert (tmp_path / HOMES[shell]).is_file()


@pytest.mark.parametrize(
    ("shell", "asked"),
    [
        ("bash", {"COMP_WORDS": "propos sug", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "propos sug"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "propos sug", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
def test_a_command_is_completed(tmp_path, shell, asked):
    done = ask(tmp_path, PROPOS, _PROPOS_COMPLETE=f"complete_{shell}", **asked)
    assert done.returncode == 0, done.stderr
    assert "suggest-k" in done.stdout
    assert "evaluate" not in done.stdout


def test_bash_completes_after_it_was_started_anew(tmp_path):
    done = ask(tmp_path, "bash", "-c", f"{PROPOS} --install-completion; true")
    assert "bash completion installed" in done.stdout, done.stderr
    script = """
    COMP_WORDS=(propos run --qui) COMP_CWORD=2
    completing=$(complete -p propos | sed 's/.*-F \\([^ ]*\\).*/\\1/')
    $completing propos --qui run
    echo "${COMPREPLY[@]}"
    """
    done = ask(tmp_path, "bash", "--rcfile", tmp_path / ".bashrc", "-ic", script)
    assert done.stdout.split()[-1:] == ["--quiet"], done.stderr


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh on this machine")
def test_zsh_reads_what_was_installed(tmp_path):
    ask(tmp_path, "zsh", "-c", f"{PROPOS} --install-completion; true")
    done = ask(tmp_path, "zsh", "-ic", "print ${_comps[propos]}")
    assert "propos" in done.stdout, done.stderr


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on this machine")
def test_fish_completes(tmp_path):
    ask(tmp_path, "fish", "-c", f"{PROPOS} --install-completion; true")
    done = ask(tmp_path, "fish", "-c", "complete -C 'propos sug'")
    assert "suggest-k" in done.stdout, done.stderr
