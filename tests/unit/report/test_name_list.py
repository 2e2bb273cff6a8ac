"""Names of images, each by what differs from the one before."""

import base64

import numpy as np
import pytest

from helpers.page_names import spelt_out
from propos.review.report.name_list import BLOCK, CHUNK, pack_names


def test_a_name_gives_what_differs_from_the_one_before_it():
    packed = pack_names(["a/1.jpg", "a/12.jpg", "b.jpg", "b.jpg"])
    assert base64.b64decode(packed["base64"]) == b"\x00a/1.jpg\n\x032.jpg\n\x00b.jpg\n\x05\n"


def test_numbers_from_0_on_need_no_names():
    assert pack_names(["0", "1", "2"]) is None
    assert pack_names(["0", "1", "3"]) is not None


def test_a_block_begins_with_a_whole_name():
    packed = pack_names(["x.jpg"] * (BLOCK + 1))
    assert base64.b64decode(packed["base64"]).endswith(b"\x00x.jpg\n")


LONG = "x" * 254
ODD = [
    "",
    "a",
    "a",
    "é",
    "è",
    "日本/１.jpg",
    LONG,
    f"{LONG}x",
    f"{LONG}xx",
    f"{LONG}xy",
    f"{LONG}xyz",
    "<img>",
    "`${0}",
]


@pytest.mark.parametrize("count", [1, len(ODD), BLOCK, BLOCK + 1, CHUNK + 1])
def test_all_names_come_back(count):
    names = (ODD * (count // len(ODD) + 1))[:count]
    assert spelt_out(pack_names(names)) == names


def test_a_name_that_looks_like_a_length_or_a_line_break_of_the_list_comes_back():
    draw = np.random.default_rng(0)
    letters = [chr(code) for code in range(1, 256) if chr(code) != "\n"]
    names = ["".join(draw.choice(letters, size=draw.integers(1, 20))) for _ in range(500)]
    names += [f"{'y' * 10}{number}" for number in range(500)]  # share ten letters: the length is a line break's byte
    assert spelt_out(pack_names(names)) == names
