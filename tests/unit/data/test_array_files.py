"""Arrays in files: hostile, damaged, too large, and cut short while they are in use."""

import errno
import os
import tracemalloc
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from propos.common.errors import InputError
from propos.data import memory, open_source
from propos.data.array_files import read_arrays
from propos.runs.rows import ArrayFile


@pytest.fixture
def little_memory(tmp_path, monkeypatch):
    """A machine that has 100 kB left."""
    (tmp_path / "meminfo").write_text("MemTotal: 900 kB\nMemAvailable: 100 kB\n")
    monkeypatch.setattr(memory, "_SYSTEM", tmp_path / "meminfo")


def numbers(count=9, side=4, dtype=np.uint8):
    return np.arange(count * side * side).reshape(count, side, side).astype(dtype)


def with_header(path, text, content=b""):
    """Write a .npy file by hand."""
    header = text.encode().ljust(117) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content)
    return path


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    path = tmp_path_factory.mktemp("stored") / "a.npy"
    np.save(path, numbers(50, dtype=">f4"))
    return path


@given(st.lists(st.integers(-50, 49), max_size=12))
def test_rows_are_those_of_the_array(stored, rows):
    read, _ = read_arrays(stored)
    assert np.array_equal(read[np.array(rows, dtype=np.int64)], np.load(stored)[rows])


@given(st.integers(0, 60), st.integers(0, 60))
def test_slices_are_those_of_the_array(stored, start, stop):
    read, _ = read_arrays(stored)
    assert np.array_equal(read[start:stop], np.load(stored)[start:stop])


@pytest.mark.parametrize("row", [50, -51])
def test_rows_beyond_the_end_are_errors(stored, row):
    with pytest.raises(IndexError):
        read_arrays(stored)[0][np.array([0, row])]


def test_systems_without_preadv_read_the_same(stored, monkeypatch):
    monkeypatch.delattr(os, "preadv")
    assert np.array_equal(read_arrays(stored)[0][np.array([7, 8, 2])], np.load(stored)[[7, 8, 2]])


def test_files_in_fortran_order_hold_the_same_images(tmp_path):
    np.save(tmp_path / "f.npy", np.asfortranarray(numbers()))
    assert np.array_equal(open_source(tmp_path / "f.npy").batch(np.arange(9))[:, 0], numbers())


def test_a_file_cut_short_while_it_is_in_use_is_an_error_and_not_the_end(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, numbers(5_000))
    source = open_source(path)
    os.truncate(path, 128 + 16 * 2_000)
    assert np.array_equal(source.batch(np.array([1_999]))[0, 0], numbers(5_000)[1_999])
    with pytest.raises(OSError, match=r"a.npy") as error:
        source.batch(np.array([0, 4_999]))
    assert (error.value.errno, error.value.strerror[:13]) == (errno.EIO, "was cut short")


@pytest.mark.parametrize("name", ["f.npy", "f.npz"])
def test_what_is_no_ordinary_file_is_not_waited_for(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match=rf"{name}: is not an ordinary file"):
        open_source(tmp_path / name)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1000000000000, 64, 64)}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 4, -4)}",
        "{'descr': '|u1', 'fortran_order': True, 'shape': (99, 9, 9)}",
    ],
)
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_a_header_that_promises_too_much_is_refused_for_that(tmp_path, header, ending):
    path = with_header(tmp_path / "images.npy", header, bytes(64))
    if ending == "npz":
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.write(path, "images.npy")
        path = tmp_path / "a.npz"
    with pytest.raises(InputError, match=r"cannot be read, it is cut short: it needs .* bytes for an array of"):
        open_source(path)


@pytest.mark.parametrize(
    "header", ["{'descr'", "(" * 90, "{'descr': '|O', 'shape': ()}", "0" * 110, "'\x00'", "{\n  1"]
)
def test_headers_that_are_none_are_refused_in_one_line(tmp_path, header):
    with pytest.raises(InputError, match=r"its header is damaged$"):
        open_source(with_header(tmp_path / "a.npy", header))


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_nobody_is_advised_to_unpickle(tmp_path, ending):
    objects = np.array([[[{"a": 1}]]], dtype=object)
    path = tmp_path / f"evil.{ending}"
    if ending == "npy":
        np.save(path, objects, allow_pickle=True)
    else:
        np.savez(path, images=objects)
    with pytest.raises(InputError, match=r"holds Python objects; save the images as an array of numbers"):
        open_source(path)
    path.write_bytes(b"\x80\x04N.")
    with pytest.raises(InputError, match=r"its header is damaged$"):
        open_source(path)


def test_an_archive_larger_than_the_memory_is_refused_with_its_size(tmp_path, little_memory):
    np.savez_compressed(tmp_path / "bomb.npz", images=np.zeros((4_000, 16, 16), np.uint8))
    assert (tmp_path / "bomb.npz").stat().st_size < 5_000
    with pytest.raises(InputError, match=r"bomb.npz: images.npy: takes 0.0 GB of memory and 0.0 GB are free: save"):
        open_source(tmp_path / "bomb.npz")


def test_numbers_that_must_be_scaled_are_refused_where_their_bytes_do_not_fit(tmp_path, little_memory):
    np.save(tmp_path / "a.npy", np.zeros((4_000, 16, 16), np.float16))
    with pytest.raises(InputError, match=r"a.npy: takes .* of memory and .* are free: save them as uint8"):
        open_source(tmp_path / "a.npy")
    np.save(tmp_path / "b.npy", np.zeros((4_000, 16, 16), np.uint8))
    assert len(open_source(tmp_path / "b.npy")) == 4_000


def test_an_archive_is_unpacked_once(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((1_000, 32, 32), np.uint8), labels=np.arange(1_000))
    read, unpacked = zipfile.ZipExtFile.read, 0

    def counted(file, size=-1):
        nonlocal unpacked
        content = read(file, size)
        unpacked += len(content)
        return content

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    assert len(open_source(tmp_path / "a.npz").labels) == 1_000
    assert unpacked < 1.1 * 1_000 * 32 * 32


def test_files_may_be_called_by_each_others_ending(tmp_path):
    np.savez(tmp_path / "a.npz", images=numbers())
    (tmp_path / "a.npz").rename(tmp_path / "b.npy")
    np.save(tmp_path / "c.npy", numbers())
    (tmp_path / "c.npy").rename(tmp_path / "d.npz")
    for name in ("b.npy", "d.npz"):
        assert np.array_equal(open_source(tmp_path / name).batch(np.arange(9))[:, 0], numbers())


@pytest.mark.parametrize("place", [60, 500, -30])
def test_a_damaged_archive_is_one_line(tmp_path, place):
    np.savez_compressed(
        tmp_path / "a.npz", images=np.random.default_rng(0).integers(256, size=(90, 8, 8), dtype=np.uint8)
    )
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[place : place + 8] = b"\xff" * 8
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"a.npz") as error:
        open_source(tmp_path / "a.npz")
    assert "\n" not in str(error.value)


def test_a_large_file_takes_no_memory(tmp_path):
    path = tmp_path / "large.npy"
    np.save(path, np.zeros((20_000, 32, 32), np.uint8))
    tracemalloc.start()
    source = open_source(path)
    source.batch(np.arange(10))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(source.images, ArrayFile)
    assert most < 1_000_000
