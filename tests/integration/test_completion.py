"""Completion of commands and options, installed into a home of its own and asked as each shell asks."""

import fcntl
import os
import pty
import select
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from helpers.hold import PATIENCE

PROPOS = Path(sys.executable).with_name("propos")
HOMES = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/completions/propos.fish"}


def environment_of(home, **more):
    path = f"{PROPOS.parent}{os.pathsep}{os.environ['PATH']}"
    elsewhere = {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "ZDOTDIR"}  # where shells look before they look at home
    kept = {name: value for name, value in os.environ.items() if name not in elsewhere}
    return {**kept, "HOME": str(home), "PATH": path, **more}


def ask(home, *words, **more):
    environment = environment_of(home, **more)
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


def test_bash_completes_in_a_new_shell(tmp_path):
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


@pytest.mark.parametrize("shell", ["zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "added"),
    [("propos sug", "gest-k"), ("propos run --we", "ights")],
    ids=["a command", "an option"],
)
def test_a_terminal_completes_what_is_typed(tmp_path, shell, typed, added):
    """A shell, started after the installation, gets keys and shows the completions."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} on this machine")
    done = ask(tmp_path, shell, "-c", f"{PROPOS} --install-completion; true")
    assert f"{shell} completion installed" in done.stdout, done.stderr
    # zsh reads the completion with the first Tab of a shell, and completes with the second.
    assert seen(tmp_path, shell, f"{typed}\t\t", added)


def seen(home, shell, keys, wanted):
    """Tell whether a shell in a terminal of its own shows a text after these keys; what was typed is in its way."""
    ready, words = b"what-now", [shell, "-i"]
    with (home / ".zshrc").open("a") as settings:
        settings.write(f"\nPS1={ready.decode()}\n")
    if shell == "fish":
        # Without it the first start reads every manual page of the machine, and continues when the shell is gone.
        (home / ".local/share/fish/generated_completions").mkdir(parents=True)
        words += ["-C", f"function fish_prompt; echo -n {ready.decode()}; end; function fish_greeting; end"]
    ours, theirs = pty.openpty()
    environment = environment_of(home, TERM="vt100")
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    process = subprocess.Popen(
        words, **streams, env=environment, cwd=home, start_new_session=True, preexec_fn=at_terminal
    )
    os.close(theirs)
    try:
        return until(ours, ready) and os.write(ours, keys.encode()) and until(ours, wanted.encode())
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def at_terminal():
    """Have the terminal of the standard streams control this process, as a person's shell is."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def until(terminal, wanted):
    """Read a terminal until it shows a text; False where nothing comes any more."""
    shown = b""
    while wanted not in shown:
        if not select.select([terminal], [], [], PATIENCE)[0]:
            return False
        shown += os.read(terminal, 4096)
    return True
