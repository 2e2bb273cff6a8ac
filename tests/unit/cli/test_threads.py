"""How the threads of a command wait is decided by what else the machine has to do, unless a person has decided."""

import os
import subprocess
import sys

import pytest

from propos.cli import threads

ACTIVE, PASSIVE = "(active wait: the machine is idle).", "(passive wait: other programs use the machine)."
SLEEPING = {"OMP_WAIT_POLICY": "PASSIVE"}


@pytest.mark.parametrize(
    ("cores", "machine", "limit", "others", "settings", "words"),
    [
        (2, 2, None, 0.0, SLEEPING, "Using 2 threads."),
        (3, 3, None, 5.0, SLEEPING, "Using 3 threads."),
        (4, 4, None, 0.0, {}, f"Using 4 threads {ACTIVE}"),
        (4, 4, None, 0.3, {}, f"Using 4 threads {ACTIVE}"),  # something short
        (4, 4, None, 1.0, SLEEPING, f"Using 4 threads {PASSIVE}"),
        (4, 4, None, None, {}, f"Using 4 threads {ACTIVE}"),  # not known
        (8, 64, None, 40.0, {}, f"Using 8 threads {ACTIVE}"),  # others have cores of their own
        (8, 64, None, 60.0, SLEEPING, f"Using 8 threads {PASSIVE}"),
        (8, 8, 5, 0.0, {"OMP_NUM_THREADS": "5"}, f"Using 5 threads {ACTIVE}"),
        (8, 8, 1, 8.0, {"OMP_NUM_THREADS": "1", **SLEEPING}, "Using 1 thread."),
        (2, 2, 16, 0.0, SLEEPING, "Using 2 threads."),
    ],
)
def test_threads_sleep_where_others_want_the_cores(cores, machine, limit, others, settings, words):
    chosen, sentence = threads.choice(cores, machine, limit, lambda: others)
    assert chosen == settings
    assert sentence == words


@pytest.mark.parametrize(
    ("text", "cores"),
    [("200000 100000", 2), ("150000 100000", 2), ("5000 100000", 1), ("max 100000", None), ("", None)],
)
def test_a_containers_quota_is_rounded_up(control_groups, text, cores):
    control_groups("0::/\n")
    assert threads.quota() is None
    control_groups("0::/\n", {"cpu.max": text})
    assert threads.quota() == cores


@pytest.fixture
def control_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_GROUPS", tmp_path)
    monkeypatch.setattr(threads, "_MEMBERSHIP", tmp_path / "membership")
    assert threads.quota() is None

    def make(membership, files=None):
        (tmp_path / "membership").write_text(membership)
        for name, text in (files or {}).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)

    return make


def test_the_tightest_of_the_groups_above_a_process_counts(control_groups):
    """As for what `systemd-run -p CPUQuota=` starts, whose limit stands in its own group or in its slice."""
    files = {"a.slice/cpu.max": "200000 100000", "a.slice/b.scope/cpu.max": "max 100000", "c/cpu.max": "100000 100000"}
    control_groups("0::/a.slice/b.scope\n", files)
    assert threads.quota() == 2


@pytest.mark.parametrize(("share", "cores"), [("350000", 4), ("-1", None)])
def test_the_older_kind_of_group_is_read_too(control_groups, share, cores):
    files = {"cpu/docker/cpu.cfs_quota_us": f"{share}\n", "cpu/docker/cpu.cfs_period_us": "100000\n"}
    control_groups("4:memory:/docker\n3:cpu,cpuacct:/docker\n", files)
    assert threads.quota() == cores


def test_this_process_is_not_counted_among_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(threads, "_RUNNING", tmp_path / "loadavg")
    assert threads.busy_threads() is None
    (tmp_path / "loadavg").write_text("0.5 0.4 0.3 4/210 1234\n")
    assert threads.busy_threads() == 3


def test_a_moments_work_of_others_does_not_pass_for_a_busy_machine(monkeypatch):
    class Loads:
        looks = iter([9] * 20 + [1] * 30)  # programs that run, this one among them

        def read_text(self):
            return f"0.5 0.4 0.3 {next(self.looks)}/210 1234\n"

    monkeypatch.setattr(threads, "_RUNNING", Loads())
    monkeypatch.setattr(threads, "BETWEEN", 0)
    assert threads.busy_threads() == 0


ASK = """
import os, sys
from propos.cli.threads import set_wait_policy
said = set_wait_policy()
assert "torch" not in sys.modules
print(said, os.environ.get("OMP_WAIT_POLICY"))
"""


def asked(**own):
    environment = {key: value for key, value in os.environ.items() if not key.startswith(threads.OWN)}
    done = subprocess.run([sys.executable, "-c", ASK], env={**environment, **own}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_persons_own_setting_holds():
    assert asked(OMP_NUM_THREADS="1") == "None None"
    assert asked(OMP_WAIT_POLICY="ACTIVE") == "None ACTIVE"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells what is running")
def test_threads_sleep_next_to_busy_programs():
    spin = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    # As many as the machine has cores, not as this process may use: it is the machine that is asked.
    busy = [subprocess.Popen(spin, stdout=subprocess.PIPE) for _ in range((os.cpu_count() or 1) + 1)]
    try:
        for process in busy:
            process.stdout.readline()
        # What scikit-learn leaves in the environment is no person's wish.
        assert asked(KMP_INIT_AT_FORK="FALSE").endswith("PASSIVE")
    finally:
        for process in busy:
            process.kill()
            process.communicate()
