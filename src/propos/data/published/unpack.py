"""Unpacking a fetched archive: files into their own folder, and nowhere else."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from propos.common.errors import RunFailed

_UNPACKING = ".unpacking"

Members = Iterator[tuple[str, IO[bytes]]]


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive that holds one folder to where that folder belongs; half an archive leaves nothing there."""
    aside = folder.with_name(f".{folder.name}{_UNPACKING}")
    shutil.rmtree(aside, ignore_errors=True)
    try:
        with _members(archive) as members:
            for name, content in members:
                path = aside / _inside(name, folder.name, archive)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    shutil.copyfileobj(content, file, 1 << 20)
        if not aside.is_dir():
            raise RunFailed(f"{archive}: contains no files")
        aside.rename(folder)
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise RunFailed(f"{archive}: cannot be unpacked: {error}") from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _inside(name: str, top: str, archive: Path) -> PurePosixPath:
    """Return a member's path within the one folder the archive is meant to hold, or refuse the archive."""
    parts = PurePosixPath(name).parts
    if len(parts) < 2 or parts[0] != top or ".." in parts or "\\" in name:
        raise RunFailed(f"{archive}: is refused: its member {name!r} would be written outside {top}")
    return PurePosixPath(*parts[1:])


@contextmanager
def _members(archive: Path) -> Iterator[Members]:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as zipped:
            yield _zip_members(zipped, archive)
    else:
        with tarfile.open(archive) as tarred:
            yield _tar_members(tarred, archive)


def _tar_members(tarred: tarfile.TarFile, archive: Path) -> Members:
    for member in tarred:
        if member.isdir():
            continue
        content = tarred.extractfile(member) if member.isreg() else None
        if content is None:
            raise RunFailed(f"{archive}: is refused: its member {member.name!r} is not an ordinary file")
        yield member.name, content


def _zip_members(zipped: zipfile.ZipFile, archive: Path) -> Members:
    for member in zipped.infolist():
        if member.is_dir():
            continue
        if stat.S_ISLNK(member.external_attr >> 16):
            raise RunFailed(f"{archive}: is refused: its member {member.filename!r} is not an ordinary file")
        with zipped.open(member) as content:
            yield member.filename, content
