"""Downloading published sets: interrupted downloads are resumed, and every file is checked before it is used."""

from __future__ import annotations

import hashlib
import http.client
import time
import urllib.error
import urllib.request
from pathlib import Path

from propos.common.errors import InputError, RunFailed
from propos.data.cache.images import Progress
from propos.data.published.benchmark import Benchmark, Download
from propos.data.published.unpack import unpack

ARCHIVES = (".tar.gz", ".zip")
PART = ".part"
TRIES = 5  # in a row without a byte gained
PAUSE = 0.2  # seconds before the second try; the next wait longer
TIMEOUT = 30.0
CHUNK = 1 << 16


def fetch(benchmark: Benchmark, root: Path, progress: Progress | None = None) -> Path:
    """Fetch a set into the data root and return its folder; a set that is there is left alone.

    An archive that a person has put into the data root is checked and unpacked instead of being fetched.
    """
    if not benchmark.downloads:
        raise InputError(f"{benchmark.name}: has no public download: {benchmark.advice(root)}")
    folder = root / benchmark.folders[0]
    for download in benchmark.downloads:
        if download.file.endswith(ARCHIVES):
            _fetch_archive(download, folder, progress)
        elif not (folder / download.file).exists():
            _fetch_file(download, folder / download.file, progress)
    return folder


def _fetch_archive(download: Download, folder: Path, progress: Progress | None) -> None:
    if folder.exists():
        return
    archive = folder.with_name(download.file)
    brought = archive.exists()
    if brought:
        _check(download, archive, f"{archive} is not the published file: remove it, or put the right one there")
    else:
        _fetch_file(download, archive, progress)
    unpack(archive, folder)
    if not brought:
        archive.unlink()


def _fetch_file(download: Download, path: Path, progress: Progress | None) -> None:
    """Download a file under a temporary name, and rename it once its checksum is right."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + PART)
    report = progress or (lambda done, total: None)
    tries = 0
    while True:
        before = _size(part)
        try:
            _go_on(download.url, part, report)
            break
        except (OSError, http.client.HTTPException) as error:
            _refuse_unless_transient(error, download, path, part)
            tries = 0 if _size(part) > before else tries + 1
            if tries == TRIES:
                raise _unreachable(error, download, path, part) from None
            time.sleep(PAUSE * tries)
    try:
        _check(
            download,
            part,
            f"{download.url}: the download does not match the published checksum and was removed: try again",
        )
    except RunFailed:
        part.unlink()
        raise
    part.replace(path)


def _go_on(url: str, part: Path, report: Progress) -> None:
    """Download the missing part; a connection that breaks early is a ConnectionError."""
    have = _size(part)
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        # An opener of our own: urlopen's keeps the proxies of the first call for good.
        answer = urllib.request.build_opener().open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if error.headers.get("Content-Range") != f"bytes */{have}":
                part.unlink()  # longer than the file is now: start again
                raise ConnectionError("the file on the server has changed") from None
            return
        raise
    with answer:
        resumed = answer.status == http.client.PARTIAL_CONTENT
        if resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
            raise ConnectionError("the server sent another part than requested")
        have = have if resumed else 0
        length = answer.headers.get("Content-Length")
        total = have + int(length) if length else 0
        with part.open("ab" if resumed else "wb") as file:
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                have += len(chunk)
                report(have, max(total, have))
        if have < total:
            raise ConnectionError("the connection broke")


def _refuse_unless_transient(error: Exception, download: Download, path: Path, part: Path) -> None:
    """Let only what may pass be tried again: broken connections and busy servers."""
    if isinstance(error, urllib.error.HTTPError) and error.code < 500:
        raise _unreachable(error, download, path, part) from None
    of_network = urllib.error.URLError | http.client.HTTPException | ConnectionError | TimeoutError
    if not isinstance(error, of_network):
        raise error  # a full disk, or a folder one may not write to


def _unreachable(error: Exception, download: Download, path: Path, part: Path) -> RunFailed:
    reason = getattr(error, "reason", None) or error
    kept = f"; {_size(part):,} bytes are kept: run the same command to resume" if _size(part) else ""
    return RunFailed(f"{download.url}: cannot be fetched: {reason}{kept}; or put the file at {path} yourself")


def _check(download: Download, path: Path, sentence: str) -> None:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if digest != download.md5:
        raise RunFailed(sentence)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
