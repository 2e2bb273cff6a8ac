"""The check-list of a release: python .ci/release.py ROOT [DIST] says what is not ready, a line each.

Without the folder of the archives it says what can be known before they are built.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path


def faults(root: Path, dist: Path | None) -> list[str]:
    """Return what keeps a version from being released."""
    version = tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"]
    built = [] if dist is None else _archives(dist, version)
    return [*_versions(root, version), *_changelog(root, version), *built, *_git(root, version)]


def _versions(root: Path, version: str) -> list[str]:
    elsewhere = {
        "src/propos/__init__.py": rf'^__version__ = "{re.escape(version)}"$',
        "CITATION.cff": rf"^version: {re.escape(version)}$",
    }
    return [
        f"{name}: does not say {version}, as pyproject.toml does"
        for name, line in elsewhere.items()
        if not re.search(line, (root / name).read_text(), flags=re.MULTILINE)
    ]


def _changelog(root: Path, version: str) -> list[str]:
    found = re.search(r"^## (\S+)(?: \((.+)\))?\n\n(.*)", (root / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    if found is None or found[1] != version:
        return [f"CHANGELOG.md: its first section is not that of {version}"]
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", found[2] or ""):
        return [f"CHANGELOG.md: {version} has no date: write ## {version} (YYYY-MM-DD)"]
    return [] if found[3].startswith("- ") else [f"CHANGELOG.md: {version} says nothing"]


def _archives(dist: Path, version: str) -> list[str]:
    wanted = {f"propos-{version}.tar.gz", f"propos-{version}-py3-none-any.whl"}
    there = {path.name for path in dist.glob("propos-*")}
    return [f"{dist}: holds {', '.join(sorted(there)) or 'nothing'}, not {', '.join(sorted(wanted))}"] * (
        there != wanted
    )


def _git(root: Path, version: str) -> list[str]:
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout

    found = ["git: there are changes that are not committed"] if git("status", "--porcelain").strip() else []
    return found + ([f"git: v{version} is tagged already"] if git("tag", "--list", f"v{version}").strip() else [])


if __name__ == "__main__":
    root, *dist = map(Path, sys.argv[1:])
    wrong = faults(root, dist[0] if dist else None)
    sys.stderr.writelines(f"{line}\n" for line in wrong)
    sys.exit(bool(wrong))
