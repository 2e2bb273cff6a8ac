"""The package as others install it: archives are built, the wheel is installed alone, and a run of it looked at."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.chromium import DESKTOP, PATIENCE

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
LARGEST = 5_000_000  # bytes of either archive


def carried_out(*words, cwd, path=""):
    """Run a program that finds nothing but its own environment on the path: no Node, no compiler, no git."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env={**kept, "PATH": str(path)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Build the source archive from here, and the wheel from what the archive holds; or take those of a release."""
    folder = tmp_path_factory.mktemp("archives")
    given = os.environ.get("PROPOS_DIST")
    build = [sys.executable, "-m", "hatchling", "build"]
    if given is None:
        subprocess.run([*build, "-t", "sdist", "-d", folder], cwd=ROOT, check=True, capture_output=True)
    (source,) = (ROOT / given if given else folder).glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = (path for path in folder.iterdir() if path.is_dir())
    carried_out(*build, "-t", "wheel", "-d", folder, cwd=unpacked)
    (wheel,) = (ROOT / given if given else folder).glob("*.whl")
    return SimpleNamespace(source=source, wheel=wheel, unpacked=unpacked)


@pytest.fixture(scope="module")
def installed(archives, tmp_path_factory):
    """Install the wheel in an environment of its own, which borrows others' packages from that of the tests."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False, symlinks=True)
    scheme = {"base": str(home), "platbase": str(home)}
    packages, programs = (Path(sysconfig.get_path(name, "venv", scheme)) for name in ("purelib", "scripts"))
    # A line of a .pth file is a folder to look in: the editable install next to the packages is not followed.
    (packages / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    pip = [sys.executable, "-m", "pip", "--python", programs / "python", "install"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile"]
    done = carried_out(*pip, *quiet, archives.wheel, cwd=home)
    assert done.stdout + done.stderr == ""
    return SimpleNamespace(programs=programs, packages=packages)


@pytest.fixture(scope="module")
def run(installed, tmp_path_factory):
    """Run the installed command for an epoch."""
    folder = tmp_path_factory.mktemp("away")
    words = ["run", "digits", "--epochs", "1", "--out", "run", "--device", "cpu"]
    said = carried_out(installed.programs / "propos", *words, cwd=folder, path=installed.programs).stdout
    return SimpleNamespace(folder=folder / "run", said=said)


def test_archives_hold_the_page_and_what_is_needed_to_build_and_test_it(archives):
    with zipfile.ZipFile(archives.wheel) as wheel:
        names = set(wheel.namelist())
    page = {f"propos/review/report/page/{name}" for name in ("app.js", "app.css", "licenses.txt")}
    assert page <= names
    assert {re.sub("-.+", "", name.split("/")[0]) for name in names} == {"propos"}
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "Makefile", "web/package-lock.json", "tests/conftest.py"):
        assert (archives.unpacked / name).is_file(), name
    asked_for = re.findall(r"\.ci/[\w.-]+", (archives.unpacked / "Makefile").read_text())
    assert len(asked_for) > 2
    assert [name for name in asked_for if not (archives.unpacked / name).is_file()] == []
    assert max(archives.wheel.stat().st_size, archives.source.stat().st_size) < LARGEST


def test_the_wheel_alone_is_what_runs(installed, tmp_path):
    words = ["-c", "import propos; print(propos.__file__)"]
    where = carried_out(installed.programs / "python", *words, cwd=tmp_path).stdout.strip()
    assert Path(where).is_relative_to(installed.packages)
    said = carried_out(installed.programs / "propos", "--version", cwd=tmp_path).stdout
    assert said == f"propos {tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}\n"


def test_a_run_of_the_installed_command_ends_with_its_page(installed, run):
    assert "1,797 images" in run.said
    page = installed.packages / "propos" / "review" / "report" / "page"
    report = run.folder / "report"
    assert (report / "app.js").read_bytes() == (page / "app.js").read_bytes()


def test_its_page_opens_in_a_browser(browser, run):
    context = browser.new_context(viewport=DESKTOP)
    context.set_default_timeout(PATIENCE)
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((run.folder / "report" / "index.html").as_uri())
    page.wait_for_selector("h1")
    assert page.locator(".card").count() == 10
    assert complaints == []
    context.close()
