"""The check-list of a release, and what the repository says of itself."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]


@pytest.fixture
def ready(tmp_path):
    """Make a repository that is ready to be released."""
    root = tmp_path / "root"
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "src/propos/__init__.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    changes = (root / "CHANGELOG.md").read_text()
    heading = re.search(r"^## .+$", changes, flags=re.MULTILINE)[0]
    (root / "CHANGELOG.md").write_text(changes.replace(heading, f"## {VERSION} (2030-01-02)", 1))
    (tmp_path / "dist").mkdir()
    for name in (f"propos-{VERSION}.tar.gz", f"propos-{VERSION}-py3-none-any.whl"):
        (tmp_path / "dist" / name).touch()
    git(root, "init", "--quiet")
    commit(root)
    return root


def git(root, *words):
    who = ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    subprocess.run(["git", "-C", root, *who, *words], check=True, capture_output=True)


def commit(root):
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "state")


def check(root, built=True):
    words = [sys.executable, ROOT / ".ci" / "release.py", root, root.parent / "dist"]
    done = subprocess.run(words if built else words[:-1], capture_output=True, text=True)
    assert done.returncode == bool(done.stderr)
    return done.stderr.splitlines()


def test_what_is_ready_is_found_so(ready):
    assert check(ready) == []


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("CHANGELOG.md", "(2030-01-02)", "(unreleased)", "has no date"),
        ("CHANGELOG.md", f"## {VERSION}", "## 99.0", "its first section is not that of"),
        ("CITATION.cff", f"version: {VERSION}", "version: 99.0", "does not say"),
        ("src/propos/__init__.py", VERSION, "99.0", "does not say"),
        ("pyproject.toml", f'version = "{VERSION}"', 'version = "99.0"', "holds propos"),
    ],
)
def test_what_is_not_ready_is_said(ready, file, before, after, said):
    text = (ready / file).read_text()
    assert before in text
    (ready / file).write_text(text.replace(before, after, 1))
    commit(ready)
    assert any(said in line for line in check(ready)), check(ready)


def test_a_version_is_released_once_and_from_what_is_committed(ready):
    git(ready, "tag", f"v{VERSION}")
    (ready / "CHANGELOG.md").write_text((ready / "CHANGELOG.md").read_text() + "- more\n")
    assert check(ready) == ["git: there are changes that are not committed", f"git: v{VERSION} is tagged already"]


def test_what_is_not_ready_is_known_before_anything_is_built(ready):
    shutil.rmtree(ready.parent / "dist")
    assert check(ready, built=False) == []
    git(ready, "tag", f"v{VERSION}")
    assert check(ready, built=False) == [f"git: v{VERSION} is tagged already"]


def test_the_citation_has_what_its_format_asks_for():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert (cited["version"], cited["license"]) == (VERSION, PROJECT["license"])
    paper = cited["preferred-citation"]
    assert {"type", "title", "authors"} <= paper.keys()
    assert [person["family-names"] for person in paper["authors"]] == ["Huang", "Chen", "Zhang", "Shan"]
    assert re.fullmatch(r"10\.\d{4,9}/\S+", paper["doi"])


def test_templates_of_issues_are_forms():
    forms = [path for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml"]
    assert forms
    for path in forms:
        form = yaml.safe_load(path.read_text())
        assert {"name", "description", "body"} <= form.keys()
        ids = [part["id"] for part in form["body"]]
        assert len(set(ids)) == len(ids)


def requirements(lines):
    """Return each package's limits by its name in small letters."""
    return {re.match(r"[\w.-]+", line)[0].lower(): line for line in lines}


def test_the_lowest_versions_that_are_allowed_are_those_that_are_tested():
    lines = [line for line in (ROOT / "constraints-lowest.txt").read_text().splitlines() if line[:1].isalpha()]
    pinned = {name: line.partition("==")[2] for name, line in requirements(lines).items()}
    lowest = {name: re.search(r">=([\d.]+)", line)[1] for name, line in requirements(PROJECT["dependencies"]).items()}
    assert lowest.keys() <= pinned.keys()
    for name, version in lowest.items():
        written = [int(part) for part in version.split(".")]
        tested = [int(part) for part in pinned[name].split(".")]
        assert tested[: len(written)] == written, name
        assert not any(tested[len(written) :]), f"{name}: {pinned[name]} is above the lowest"


def test_every_dependency_has_a_version_that_is_tested():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.partition("==")[0].lower() for line in lines if "==" in line}
    extras = PROJECT["optional-dependencies"].values()
    wanted = requirements([*PROJECT["dependencies"], *(line for extra in extras for line in extra)])
    assert wanted.keys() <= pinned
