import os
import shutil
import tempfile
import time
import zipfile
import zlib
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.awkward import awkward_folder, picture
from propos.common.errors import InputError
from propos.data import escape_name, scan, survey, unescape_name
from propos.data.files.content import AN_ARCHIVE, NEEDS_HEIC, NOT_AN_IMAGE, kind_of, reads_heic
from propos.data.files.entry import TOO_MUCH_TEXT, Entry, Skipped, Unreadable
from propos.data.files.listing import ENCRYPTED, NO_SUCH_FILE, NOT_A_FILE, OUTSIDE, TWICE
from propos.data.files.scan import read_all
from propos.data.files.virtual_fs import MOUNTS, virtual_devices

NOBODY = 65534


@pytest.fixture(scope="module")
def awkward(tmp_path_factory):
    return awkward_folder(tmp_path_factory.mktemp("awkward") / "photos")


def save(path, width=8, height=6, seed=0, channels=3):
    path.parent.mkdir(parents=True, exist_ok=True)
    picture(width, height, channels, seed).save(path)
    return path


def names(found):
    return [entry.name for entry in found.images]


def test_every_image_of_an_awkward_folder_has_its_true_size(awkward):
    sizes = {entry.name: (entry.width, entry.height) for entry in scan(awkward.root).images}
    assert {name: sizes[name] for name in awkward.images} == awkward.images


def test_every_other_file_is_skipped_by_header_or_left_to_decoding(awkward):
    found = scan(awkward.root)
    skipped = {skipped.path: skipped.reason for skipped in found.skipped}
    assert skipped.items() <= awkward.skipped.items()
    left = set(names(found)) - set(awkward.images)
    assert left == set(awkward.skipped) - set(skipped)
    assert left <= {name for name, reason in awkward.skipped.items() if reason.startswith("damaged")}


def test_entries_are_sorted_and_carry_their_folder(awkward):
    found = scan(str(awkward.root))
    assert names(found) == sorted(names(found))
    assert {entry.name.rpartition("/")[0] for entry in found.images} >= {"class 0/deep", "formats", "links/folder"}
    for entry in found.images:
        status = (awkward.root / unescape_name(entry.name)).stat()
        assert (entry.size, entry.mtime_ns) == (status.st_size, status.st_mtime_ns)


def test_names_are_valid_text_and_lead_back_to_their_files(awkward):
    for entry in scan(awkward.root).images:
        assert entry.name.encode().decode() == entry.name
        assert "\n" not in entry.name
        assert os.path.lexists(awkward.root / unescape_name(entry.name))
    assert "names/caf\\xe9 \\xff.png" in awkward.images
    assert "names/back\\\\slash.png" in awkward.images


@given(st.binary(min_size=1, max_size=40))
def test_any_bytes_survive_being_a_name(content):
    name = os.fsdecode(content)
    escaped = escape_name(name)
    assert escaped.encode("utf-8")
    assert os.fsencode(unescape_name(escaped)) == content


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("a\x9b2J.png", "a\\u009b2J.png"),
        ("exe.\u202egnp", "exe.\\u202egnp"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("line\u2028end", "line\\u2028end"),
        ("می\u200cخواهم 👩\u200d🔬.png", "می\u200cخواهم 👩\u200d🔬.png"),
        ("\\u202e", "\\\\u202e"),
    ],
)
def test_what_steers_a_terminal_or_is_not_seen_is_escaped(name, escaped):
    assert escape_name(name) == escaped
    assert unescape_name(escaped) == name


@pytest.mark.full
@given(st.text(max_size=20), st.text(max_size=20))
def test_different_names_stay_different(one, other):
    assert (escape_name(one) == escape_name(other)) == (one == other)


def test_a_file_is_known_by_its_content():
    assert kind_of(b"BM" + bytes(12) + b"\x28\0\0\0") == "BMP"
    assert kind_of(b"BMW is a make of cars, and this is a text") is None
    assert kind_of(b"RIFF....WAVEfmt ") is None
    assert kind_of(b"") is None


def test_heic_names_the_extra_it_needs(tmp_path):
    save(tmp_path / "a.png")
    (tmp_path / "b.jpg").write_bytes(b"\0\0\0\x18ftypheic" + bytes(64))
    found = scan(tmp_path)
    assert names(found) == ["a.png"]
    assert "propos[heic]" in NEEDS_HEIC
    assert reads_heic() or found.skipped == [Skipped("b.jpg", NEEDS_HEIC)]


def test_lists_keep_their_order_and_name_what_is_missing(tmp_path):
    paths = [save(tmp_path / "b" / "2.png"), save(tmp_path / "a" / "1.png")]
    found = scan([paths[0], str(paths[1]), paths[0], tmp_path / "gone.png", tmp_path / "a"])
    assert found.root == tmp_path
    assert names(found) == ["b/2.png", "a/1.png"]
    assert found.skipped == [
        Skipped("b/2.png", TWICE),
        Skipped("gone.png", NO_SUCH_FILE),
        Skipped("a", NOT_A_FILE),
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_text_file_of_paths_is_read_from_its_own_folder(tmp_path, encoding):
    save(tmp_path / "é" / "x y.png")
    outside = save(tmp_path.parent / "outside.png")
    (tmp_path / "list.txt").write_text(f"é/x y.png\r\n\r\n{outside}\r\n./gone.png", encoding=encoding, newline="")
    found = scan(tmp_path / "list.txt")
    assert names(found) == ["é/x y.png", str(outside)]
    assert found.skipped == [Skipped("gone.png", NO_SUCH_FILE)]


def test_a_text_file_may_hold_any_bytes(tmp_path):
    save(tmp_path / "a.png").rename(tmp_path / os.fsdecode(b"caf\xe9.png"))
    (tmp_path / "list.txt").write_bytes(b"caf\xe9.png\n")
    assert names(scan(tmp_path / "list.txt")) == ["caf\\xe9.png"]


def test_a_list_as_excel_writes_it_is_read_and_said_to_be(tmp_path):
    save(tmp_path / "café.png")
    save(tmp_path / "ÿ.png").rename(tmp_path / os.fsdecode(b"\xff.png"))
    (tmp_path / "list.csv").write_bytes(
        "image,label\r\ncafé.png,thé “vert”\r\nÿ.png,\x81\r\n".encode("cp1252", "replace")
    )
    found = scan(tmp_path / "list.csv")
    assert [(entry.name, entry.label) for entry in found.images] == [("café.png", "thé “vert”"), ("\\xff.png", "?")]
    assert len(found.notes) == 1
    assert "list.csv: is not UTF-8: read as Windows-1252" in found.notes[0]


def test_a_utf_16_list_that_is_damaged_is_refused(tmp_path):
    (tmp_path / "list.csv").write_bytes(b"\xff\xfei\0m\0\0\xd8i\0")
    with pytest.raises(InputError, match="cannot be read as UTF-16, which its first bytes announce"):
        scan(tmp_path / "list.csv")


def test_a_csv_brings_labels(tmp_path):
    save(tmp_path / "1.png")
    save(tmp_path / "2,3.png")
    (tmp_path / "list.csv").write_text('Path,Label\n"2,3.png",dog\n1.png,cat\n')
    found = scan(tmp_path / "list.csv")
    assert [(entry.name, entry.label) for entry in found.images] == [("2,3.png", "dog"), ("1.png", "cat")]
    (tmp_path / "list.csv").write_text("file\n1.png\n")
    with pytest.raises(InputError, match="found columns file: needs image"):
        scan(tmp_path / "list.csv")


def test_a_zip_among_images_is_said_to_be_one_and_documents_are_not(tmp_path):
    save(tmp_path / "1.png")
    for name in ("old photos.ZIP", "letter.docx"):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.write(tmp_path / "1.png", "1.png")
    (tmp_path / "no.zip").write_text("no archive")
    assert scan(tmp_path).skipped == [
        Skipped("letter.docx", NOT_AN_IMAGE),
        Skipped("no.zip", NOT_AN_IMAGE),
        Skipped("old photos.ZIP", AN_ARCHIVE),
    ]


def test_a_zip_is_read_in_place_and_never_leads_outside(tmp_path):
    content = save(tmp_path / "a.png").read_bytes()
    with zipfile.ZipFile(tmp_path / "photos.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("b/2.png", "a/1.png", "../evil.png", "/etc/evil.png", "x\\..\\..\\evil.png", "C:/evil.png"):
            archive.writestr(name, content)
        for name in ("__MACOSX/._1.png", "a/.hidden.png", "a/"):
            archive.writestr(name, content)
        archive.writestr("notes.txt", "words")
    found = scan(tmp_path / "photos.zip")
    assert names(found) == ["a/1.png", "b/2.png"]
    evil = [skipped.path for skipped in found.skipped if skipped.reason == OUTSIDE]
    assert evil == ["../evil.png", "/etc/evil.png", "C:/evil.png", "x\\\\..\\\\..\\\\evil.png"]
    assert Skipped("notes.txt", NOT_AN_IMAGE) in found.skipped
    assert [(entry.width, entry.height) for entry in found.images] == [(8, 6), (8, 6)]


def finished_run(folder, info='{"schema": 1, "propos": "0.1.0"}'):
    save(folder / "report" / "pictures" / "sheet.jpg")
    (folder / "config.yaml").write_text("clusters: 3")
    (folder / "run.json").write_text(info)


@pytest.mark.parametrize("info", ['{"schema": 1, "propos": "0.1.0"}', '{"schema": 1, "pro', ""])
def test_our_own_run_folders_are_no_images(tmp_path, info):
    photos = tmp_path / "photos"
    save(photos / "1.png")
    save(photos / "runs" / "mine.png")
    finished_run(photos / "runs" / "photos-1", info)
    finished_run(tmp_path / "elsewhere", info)
    (photos / "linked").symlink_to(tmp_path / "elsewhere")
    found = scan(photos)
    assert (names(found), found.skipped) == (["1.png", "runs/mine.png"], [])
    with pytest.raises(InputError, match="photos-1: is a run folder"):
        scan(photos / "runs" / "photos-1")
    assert names(scan([photos / "runs" / "photos-1" / "report" / "pictures" / "sheet.jpg"])) == ["sheet.jpg"]


def test_our_own_run_folders_in_an_archive_are_no_images(tmp_path):
    save(tmp_path / "photos" / "1.png")
    finished_run(tmp_path / "photos" / "runs" / "photos-1")
    (tmp_path / "photos" / "theirs").mkdir()
    save(tmp_path / "photos" / "theirs" / "2.png")
    (tmp_path / "photos" / "theirs" / "run.json").write_text("{}")
    shutil.make_archive(tmp_path / "all", "zip", tmp_path / "photos")
    assert names(scan(tmp_path / "all.zip")) == ["1.png", "theirs/2.png"]
    shutil.make_archive(tmp_path / "run", "zip", tmp_path / "photos" / "runs" / "photos-1")
    with pytest.raises(InputError, match="there are no images in it"):
        scan(tmp_path / "run.zip")


def test_other_peoples_run_files_hide_nothing(tmp_path):
    save(tmp_path / "a" / "1.png")
    (tmp_path / "a" / "run.json").write_text('{"schema": 1}')
    save(tmp_path / "b" / "2.png")
    (tmp_path / "b" / "run.json").write_text("go!")
    (tmp_path / "c" / "run.json").mkdir(parents=True)
    save(tmp_path / "c" / "3.png")
    assert names(scan(tmp_path)) == ["a/1.png", "b/2.png", "c/3.png"]


def test_encrypted_members_are_skipped(tmp_path):
    content = save(tmp_path / "a.png").read_bytes()
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.writestr("open.png", content)
        archive.writestr("secret.png", content)
    raw = bytearray((tmp_path / "photos.zip").read_bytes())
    raw[raw.rindex(b"PK\x01\x02") + 8] |= 1  # the flag of the last member in the table of contents
    (tmp_path / "photos.zip").write_bytes(raw)
    found = scan(tmp_path / "photos.zip")
    assert (names(found), found.skipped) == (["open.png"], [Skipped("secret.png", ENCRYPTED)])


def test_one_image_is_a_source_too(tmp_path):
    assert names(scan(save(tmp_path / ".hidden.png"))) == [".hidden.png"]


def test_an_image_linked_to_is_listed_once_under_its_real_name(tmp_path):
    save(tmp_path / "z" / "real.png")
    (tmp_path / "a.png").symlink_to("z/real.png")
    (tmp_path / "b").symlink_to("z")
    (tmp_path / "z" / "hard.png").hardlink_to(tmp_path / "z" / "real.png")
    assert names(scan(tmp_path)) == ["z/hard.png", "z/real.png"]


def test_a_file_linked_to_twice_is_listed_once(tmp_path):
    save(tmp_path / "elsewhere" / "x.png")
    photos = tmp_path / "photos"
    photos.mkdir()
    (photos / "a.png").symlink_to(tmp_path / "elsewhere" / "x.png")
    (photos / "b.png").symlink_to(tmp_path / "elsewhere" / "x.png")
    (photos / "c").symlink_to(tmp_path / "elsewhere")
    assert names(scan(photos)) == ["a.png"]


@pytest.fixture
def anyones():
    """A folder that everybody may read, with an image in it."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        save(Path(name) / "a.png")
        yield Path(name)


@contextmanager
def as_nobody():
    """Give up being the superuser, who may read everything."""
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if superuser:
            os.seteuid(0)


def test_what_may_not_be_read_is_listed(anyones):
    save(anyones / "b.png").chmod(0)
    (anyones / "c").mkdir(mode=0)
    with as_nobody():
        found = scan(anyones)
    assert names(found) == ["a.png"]
    assert found.skipped == [
        Skipped("c", "a folder with all that is in it: permission denied"),
        Skipped("b.png", "permission denied"),
    ]


def test_a_folder_that_may_not_be_read_is_named(anyones):
    (anyones / "closed").mkdir(mode=0)
    with as_nobody(), pytest.raises(InputError, match=r"closed: cannot be read: permission denied$"):
        scan(anyones / "closed")


def test_an_archive_that_was_cut_short_is_called_so(tmp_path):
    with zipfile.ZipFile(tmp_path / "photos.zip", "w") as archive:
        archive.write(save(tmp_path / "a.png"), "a.png")
    content = (tmp_path / "photos.zip").read_bytes()
    (tmp_path / "photos.zip").write_bytes(content[:-30])
    with pytest.raises(InputError, match=r"photos\.zip: the archive is damaged or cut short; get it again$"):
        scan(tmp_path / "photos.zip")
    assert Skipped("photos.zip", AN_ARCHIVE) in scan(tmp_path).skipped


def test_a_png_with_too_much_text_is_not_called_damaged(tmp_path):
    content = save(tmp_path / "a.png").read_bytes()
    head = 33  # the signature and the first chunk
    for name, kind, body in (
        ("long.png", b"tEXt", b"x\0" + bytes(2**26 + 1)),
        ("packed.png", b"zTXt", zlib.compress(bytes(2**21))),
    ):
        body = body if kind == b"tEXt" else b"x\0\0" + body
        chunk = len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")
        (tmp_path / name).write_bytes(content[:head] + chunk + content[head:])
    found = scan(tmp_path)
    assert found.skipped == [Skipped(name, TOO_MUCH_TEXT) for name in ("long.png", "packed.png")]


def test_file_systems_that_the_system_makes_up_are_known_by_their_kind(tmp_path):
    (tmp_path / "mounts").write_text(
        "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
        "27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "30 25 0:27 / /home/proc rw - tmpfs proc rw\n"
        "\n"
        "33 31 0:300 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    )
    assert virtual_devices(tmp_path / "mounts") == {os.makedev(0, 21), os.makedev(0, 300)}
    assert virtual_devices(tmp_path / "nothing") == frozenset()


@pytest.mark.skipif(not MOUNTS.exists(), reason="the system does not say what it makes up")
def test_what_the_system_makes_up_is_not_walked_through(tmp_path):
    save(tmp_path / "a.png")
    (tmp_path / "running").symlink_to("/proc")  # whose files are without number, and change
    listed = []
    found = scan(tmp_path, lambda words: nullcontext(lambda done, total: listed.append((done, total))))
    assert ([image.name for image in found.images], found.skipped) == (["a.png"], [])
    assert listed == [(0, 0), (1, 0)]  # the folder, and the link that leads no further
    with pytest.raises(
        InputError, match=r"^/proc: is a virtual file system, not a folder of images; give a folder of images$"
    ):
        scan("/proc")


def test_a_long_look_says_how_far_it_is(tmp_path):
    for number in range(450):
        save(tmp_path / f"{number % 3}" / f"{number}.png")
    said = []

    def show_task(words):
        return nullcontext(lambda done, total: said.append((words, done, total)))

    scan(tmp_path, show_task)
    assert said == [
        *(("Looking for files", done, 0) for done in (0, 0, 150, 300)),
        *(("Reading the images' headers", done, 450) for done in (200, 400)),
    ]


def test_no_such_path_and_no_image_are_one_line_each(tmp_path):
    with pytest.raises(InputError, match="no such file or folder") as error:
        scan(tmp_path / "gone\nfor good")
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="there are no images in it"):
        scan(tmp_path)
    with pytest.raises(InputError, match="list of images is empty"):
        scan([])
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b.pdf").write_bytes(b"%PDF-")
    with pytest.raises(InputError, match=r"no image in it can be read: a.txt \(empty file\), and 1 more file$"):
        scan(tmp_path)
    with pytest.raises(InputError, match=r"no image in it can be read: b.pdf \(not a JPEG"):
        scan(tmp_path / "b.pdf")


def test_a_survey_counts_and_finds_exact_duplicates(tmp_path):
    save(tmp_path / "a.png", 10, 20, seed=1)
    save(tmp_path / "b.jpg", 30, 20, seed=1)
    save(tmp_path / "c.png", 10, 20, seed=2)
    large = save(tmp_path / "d.bmp", 90, 60).read_bytes()
    (tmp_path / "e.bmp").write_bytes(large)
    changed = bytearray(large)
    changed[8_000] ^= 1  # in the middle: size, first and last bytes are the same
    (tmp_path / "f.bmp").write_bytes(changed)
    (tmp_path / "g.png").write_bytes((tmp_path / "a.png").read_bytes())
    found = survey(tmp_path)
    assert found.formats == {"PNG": 3, "BMP": 3, "JPEG": 1}
    assert list(found.formats) == ["PNG", "BMP", "JPEG"]
    assert (found.median_width, found.median_height, found.common_size, found.channels) == (30, 20, None, 3)
    assert found.duplicates == [["a.png", "g.png"], ["d.bmp", "e.bmp"]]
    assert len(found) == 7


def test_one_size_and_grey_are_noticed(tmp_path):
    for number in range(3):
        save(tmp_path / f"{number}.png", 9, 7, number, channels=1)
    picture(9, 7, 1).convert("P").save(tmp_path / "palette.gif")
    picture(9, 7, 1).convert("I;16").save(tmp_path / "deep.png")
    found = survey(tmp_path)
    assert (found.common_size, found.channels) == ((9, 7), 1)
    save(tmp_path / "colour.png", 9, 7)
    assert survey(tmp_path).channels == 3


def test_scanning_leaves_the_folder_as_it_was(tmp_path):
    path = save(tmp_path / "a.png")
    before = sorted((p, p.stat().st_mtime_ns) for p in Path(tmp_path).rglob("*"))
    survey(tmp_path)
    assert sorted((p, p.stat().st_mtime_ns) for p in Path(tmp_path).rglob("*")) == before
    assert path.exists()


@pytest.mark.parametrize("seconds", [0.0, 0.002])
def test_quick_and_slow_files_are_parted_alike_and_in_order(seconds):
    """Slow files, as on a network's disk, are looked at by several threads."""

    def look(entry):
        time.sleep(seconds)
        if entry.name.endswith("7"):
            raise Unreadable("it is a seven")
        return entry.name

    entries = [Entry(f"{number:03d}", Path("nowhere"), 1, 0) for number in range(60)]
    seen = list(read_all(entries, look))
    assert [str(each) for each in seen] == [
        "it is a seven" if number % 10 == 7 else f"{number:03d}" for number in range(60)
    ]
