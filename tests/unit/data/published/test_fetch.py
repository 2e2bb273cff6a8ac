import hashlib
import io
import socket
import tarfile
import zipfile
from dataclasses import replace

import pytest

from helpers.official import cifar_10, mnist, tiny
from helpers.server import serving
from propos.common.errors import InputError, RunFailed
from propos.data import CATALOGUE
from propos.data.published import Download
from propos.data.published.fetch import fetch
from propos.data.published.unpack import unpack


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def packed(folder):
    """Pack a folder as the official archive does."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(folder, folder.name)
    return content.getvalue()


def offered(name, server, md5=None):
    """The catalogue's set, offered by this server."""
    downloads = tuple(
        Download(server.url(each.file), md5 or hashlib.md5(server.files[each.file]).hexdigest())
        for each in CATALOGUE[name].downloads
    )
    return replace(CATALOGUE[name], downloads=downloads)


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    made = tmp_path_factory.mktemp("made")
    cifar_10(made, per_batch=40)
    return packed(made / "cifar-10-batches-py")


def test_a_set_is_fetched_checked_and_unpacked(archive, tmp_path):
    seen = []
    with serving({"cifar-10-python.tar.gz": archive}) as server:
        folder = fetch(offered("cifar-10", server), tmp_path / "new", lambda done, total: seen.append((done, total)))
    assert folder == tmp_path / "new" / "cifar-10-batches-py"
    assert CATALOGUE["cifar-10"].look(tmp_path / "new").images == 240
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["cifar-10-batches-py"]
    assert seen[-1] == (len(archive), len(archive))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_connection_that_breaks_is_gone_on_with_where_it_broke(archive, tmp_path):
    with serving({"cifar-10-python.tar.gz": archive}) as server:
        server.breaks = [100_000, 50_000]
        fetch(offered("cifar-10", server), tmp_path)
    assert server.asked == [None, "bytes=100000-", "bytes=150000-"]
    assert CATALOGUE["cifar-10"].look(tmp_path).images == 240


def test_what_came_before_the_command_was_stopped_is_kept(archive, tmp_path):
    (tmp_path / "cifar-10-python.tar.gz.part").write_bytes(archive[:70_000])
    with serving({"cifar-10-python.tar.gz": archive}) as server:
        fetch(offered("cifar-10", server), tmp_path)
    assert server.asked == ["bytes=70000-"]


def test_a_file_that_was_whole_but_not_yet_checked_is_not_fetched_again(archive, tmp_path):
    (tmp_path / "cifar-10-python.tar.gz.part").write_bytes(archive)
    with serving({"cifar-10-python.tar.gz": archive}) as server:
        fetch(offered("cifar-10", server), tmp_path)
    assert server.asked == [f"bytes={len(archive)}-"]
    assert CATALOGUE["cifar-10"].look(tmp_path).images == 240


def test_a_partial_download_that_is_too_long_starts_again(archive, tmp_path):
    (tmp_path / "cifar-10-python.tar.gz.part").write_bytes(archive + b"more")
    with serving({"cifar-10-python.tar.gz": archive}) as server:
        fetch(offered("cifar-10", server), tmp_path)
    assert server.asked == [f"bytes={len(archive) + 4}-", None]


def test_a_server_without_ranges_sends_the_whole_file(archive, tmp_path):
    (tmp_path / "cifar-10-python.tar.gz.part").write_bytes(b"other bytes")
    with serving({"cifar-10-python.tar.gz": archive}) as server:
        server.ranges = False
        fetch(offered("cifar-10", server), tmp_path)
    assert CATALOGUE["cifar-10"].look(tmp_path).images == 240


def test_a_server_that_only_hangs_up_is_given_up_with_what_came_kept(archive, tmp_path):
    with serving({"cifar-10-python.tar.gz": archive}) as server:
        server.breaks = [1_000] + [0] * 20
        with pytest.raises(RunFailed, match="the connection broke; 1,000 bytes are kept") as failed:
            fetch(offered("cifar-10", server), tmp_path)
    assert "\n" not in str(failed.value)
    assert (tmp_path / "cifar-10-python.tar.gz.part").read_bytes() == archive[:1_000]


def test_a_wrong_checksum_leaves_nothing(archive, tmp_path):
    sentence = "the download does not match the published checksum and was removed: try again"
    with serving({"cifar-10-python.tar.gz": archive}) as server, pytest.raises(RunFailed, match=sentence):
        fetch(offered("cifar-10", server, md5="0" * 32), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_not_offered_is_said_at_once(tmp_path):
    with serving({}) as server:
        server.files["other"] = b""
        benchmark = replace(CATALOGUE["cifar-10"], downloads=(Download(server.url("gone.tar.gz"), "0" * 32),))
        with pytest.raises(RunFailed, match=r"gone\.tar\.gz: cannot be fetched: Not Found; or put the file at"):
            fetch(benchmark, tmp_path)
    assert len(server.asked) == 1


def test_without_a_network_one_sentence_says_what_to_do(tmp_path):
    with socket.socket() as taken:  # bound but not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/cifar-10-python.tar.gz"
        benchmark = replace(CATALOGUE["cifar-10"], downloads=(Download(url, "0" * 32),))
        with pytest.raises(RunFailed, match=r"refused; or put the file at .*/cifar-10-python\.tar\.gz yourself"):
            fetch(benchmark, tmp_path)


def test_an_archive_a_person_brought_is_checked_and_used_and_left(archive, tmp_path):
    brought = tmp_path / "cifar-10-python.tar.gz"
    benchmark = replace(CATALOGUE["cifar-10"], downloads=(Download("http://127.0.0.1:9/cifar-10-python.tar.gz", ""),))
    brought.write_bytes(archive)
    with pytest.raises(RunFailed, match="is not the published file"):
        fetch(benchmark, tmp_path)
    right = replace(benchmark.downloads[0], md5=hashlib.md5(archive).hexdigest())
    fetch(replace(benchmark, downloads=(right,)), tmp_path)
    assert brought.exists()
    assert CATALOGUE["cifar-10"].look(tmp_path).images == 240


def test_single_files_are_put_into_the_folder_and_only_missing_ones_are_fetched(tmp_path):
    mnist(tmp_path / "made", ".gz")
    files = {path.name: path.read_bytes() for path in (tmp_path / "made").iterdir()}
    with serving(files) as server:
        fetch(offered("mnist", server), tmp_path)
        assert CATALOGUE["mnist"].look(tmp_path).images == 8
        (tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz").unlink()
        fetch(offered("mnist", server), tmp_path)
    assert len(server.asked) == 5


def test_a_zip_is_unpacked_too(tmp_path):
    tiny(tmp_path / "made" / "tiny-imagenet-200", ["n01440764"])
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for path in sorted((tmp_path / "made").rglob("*")):
            zipped.write(path, path.relative_to(tmp_path / "made"))
    with serving({"tiny-imagenet-200.zip": content.getvalue()}) as server:
        fetch(offered("tiny-imagenet", server), tmp_path)
    assert CATALOGUE["tiny-imagenet"].look(tmp_path).images == 2


def test_imagenet_has_no_public_download(tmp_path):
    with pytest.raises(InputError, match=r"imagenet-10: has no public download: get it from https://image-net\.org"):
        fetch(CATALOGUE["imagenet-10"], tmp_path)


def tar_of(path, *members):
    with tarfile.open(path, "w:gz") as archive:
        for name, kind in members:
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, 3 if kind == tarfile.REGTYPE else 0
            member.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
            archive.addfile(member, io.BytesIO(b"abc") if kind == tarfile.REGTYPE else None)
    return path


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("../outside", tarfile.REGTYPE),
        ("set/../../outside", tarfile.REGTYPE),
        ("/tmp/outside", tarfile.REGTYPE),
        ("other/file", tarfile.REGTYPE),
        ("set", tarfile.REGTYPE),
        ("set\\..\\outside", tarfile.REGTYPE),
        ("set/link", tarfile.SYMTYPE),
        ("set/link", tarfile.LNKTYPE),
        ("set/device", tarfile.CHRTYPE),
        ("set/pipe", tarfile.FIFOTYPE),
    ],
)
def test_an_archive_that_reaches_outside_its_folder_is_refused_whole(tmp_path, name, kind):
    root = tmp_path / "root"
    root.mkdir()
    archive = tar_of(root / "set.tar.gz", ("set/good", tarfile.REGTYPE), (name, kind))
    with pytest.raises(RunFailed, match="is refused: its member"):
        unpack(archive, root / "set")
    assert [path.name for path in root.iterdir()] == ["set.tar.gz"]
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


@pytest.mark.parametrize("name", ["../outside", "set/../../outside", "/outside", "other/file", "set/link"])
def test_a_zip_that_reaches_outside_its_folder_is_refused_whole(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
        archive.writestr("set/good", b"abc")
        member = zipfile.ZipInfo(name)
        member.external_attr = 0o120777 << 16 if name == "set/link" else 0o644 << 16
        archive.writestr(member, b"/etc/passwd")
    with pytest.raises(RunFailed, match="is refused: its member"):
        unpack(tmp_path / "set.zip", tmp_path / "set")
    assert [path.name for path in tmp_path.iterdir()] == ["set.zip"]


def test_an_archive_cut_short_leaves_nothing(tmp_path, archive):
    (tmp_path / "set.tar.gz").write_bytes(archive[: len(archive) // 2])
    with pytest.raises(RunFailed, match="cannot be unpacked"):
        unpack(tmp_path / "set.tar.gz", tmp_path / "cifar-10-batches-py")
    assert [path.name for path in tmp_path.iterdir()] == ["set.tar.gz"]
