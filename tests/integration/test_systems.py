"""What one system alone has is not needed: shown on this one by taking it away."""

import subprocess
import sys

import pytest

from helpers.awkward import picture

# Others' packages choose their ways by the system's name and are loaded first; Windows' Python opens no folders.
ELSEWHERE = """
import importlib, os, pkgutil, shutil, signal, sys
import PIL.Image, filelock, jaxtyping, numpy, openTSNE, pyarrow.parquet, pydantic, rich.progress, safetensors.torch
import scipy.optimize, sklearn.metrics, torch, torch.distributed, typer, yaml

for module in ("fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[module] = None  # importing it is an ImportError

for name in (
    "chown copy_file_range eventfd fchmod fchown fdatasync fork forkpty getegid geteuid getgid getloadavg "
    "getpgid getpgrp getpriority getsid getuid getxattr killpg listxattr memfd_create mkfifo mknod nice "
    "pidfd_open posix_fadvise posix_fallocate posix_spawn pread preadv pwrite pwritev register_at_fork "
    "sched_getaffinity sched_setaffinity sched_yield sendfile setpgid setsid setxattr splice sync sysconf uname "
    "wait3 wait4 O_CLOEXEC O_DIRECTORY O_NOFOLLOW"
).split():
    if hasattr(os, name):
        delattr(os, name)
for name in "SIGALRM SIGHUP SIGPIPE SIGQUIT SIGUSR1 SIGUSR2 alarm pause pthread_sigmask setitimer sigwait".split():
    if hasattr(signal, name):
        delattr(signal, name)

open_file = os.open
def open_no_folder(path, flags, mode=0o777, **where):
    if not isinstance(path, int) and os.path.isdir(path):
        raise PermissionError(13, "Permission denied", str(path))
    return open_file(path, flags, mode, **where)
os.open = open_no_folder
shutil._use_fd_functions = False

import propos
for module in pkgutil.walk_packages(propos.__path__, "propos."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

from propos.cli import main
main()
"""


@pytest.mark.full
def test_importing_everything_and_a_small_run_need_nothing_of_one_system_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "cache"))
    for number in range(8):
        picture(16, 16, seed=number).save(tmp_path / f"{number}.png")
    few = ["--epochs", "1", "--set", "train.batch_size=4", "--set", "network.backbone=resnet-small", "--device", "cpu"]
    words = ["run", str(tmp_path), "-k", "2", "--start", "scratch", "--out", str(tmp_path / "run"), *few]
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "report" / "index.html").exists()
    assert [path.is_dir() for path in (tmp_path / "cache").iterdir()] == [True]  # the cache, and no lock left behind
