import os
import pickle
import struct

import numpy as np
import pytest

from helpers.official import pixels, python_2_pickle, python_3_pickle
from propos.common.errors import InputError
from propos.data.published.pickles import read_pickle

ROWS = pixels(3, 3072)


@pytest.mark.parametrize(
    "content",
    [
        python_2_pickle(ROWS, {b"labels": [1, 2, 3]}),
        *(python_3_pickle(ROWS, {b"labels": [1, 2, 3]}, protocol) for protocol in (2, 3, 4)),
        python_3_pickle(np.asfortranarray(ROWS), {b"labels": [1, 2, 3]}, 4),
        python_3_pickle(ROWS, {b"labels": [1, 2, 3]}, 4).replace(b"numpy._core", b"numpy.core").replace(
            b"\x8c\x16numpy.core.multiarray", b"\x8c\x15numpy.core.multiarray"
        ),
    ],
    ids=["python 2", "protocol 2", "protocol 3", "protocol 4", "by columns", "older numpy"],
)  # fmt: skip
def test_a_batch_is_read_whatever_python_and_numpy_wrote_it(tmp_path, content):
    if content.startswith(b"\x80\x04\x95"):  # frames carry their length, which the older name has shortened
        content = content[:2] + content[11:]
    (tmp_path / "batch").write_bytes(content)
    batch = read_pickle(tmp_path / "batch")
    assert np.array_equal(batch["data"], ROWS)
    assert batch["labels"] == [1, 2, 3]


class Asks:
    """Pickles as a call of a function."""

    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def hostile(marker):
    """Pickles that would make a file, or try to get at more than they need."""
    make = f"touch {marker}"
    mkdir = f"__import__('os').mkdir({str(marker)!r})"
    good = python_2_pickle(ROWS, {b"labels": [1]})
    reconstruct = b"cnumpy.core.multiarray\n_reconstruct\n"
    evil = pickle.dumps(Asks(os.system, make), 2)[2:-1]  # without its opening and its end
    return {
        "os.system": pickle.dumps(Asks(os.system, make)),
        "eval": pickle.dumps({b"data": Asks(eval, mkdir)}),
        "eval for python 2": b"\x80\x02c__builtin__\neval\n" + b"U" + bytes([len(mkdir)]) + mkdir.encode() + b"\x85R.",
        "old opcode": f"(S'{make}'\nios\nsystem\n.".encode(),
        "other numpy name": b"\x80\x02cnumpy\nload\nU\x01x\x85R.",
        "numpy's own unpickler": b"\x80\x02cnumpy.lib.format\nread_array\n.",
        "other name of numpy's module": b"\x80\x02cnumpy.core.multiarray\nfromfile\nU\x01x\x85R.",
        "name behind an admitted one": b"\x80\x04\x8c\x05numpy\x8c\x11ndarray.__class__\x93.",
        "nested in an array": good.replace(b"U\x01b\x87R", evil + b"\x87R", 1),
        "nested in a label": b"\x80\x02}U\x06labels]" + evil + b"as.",
        "objects in an array": pickle.dumps({b"data": np.array([Asks(os.system, make)], dtype=object)}, 4),
        "state for a name": b"\x80\x02" + reconstruct + b"}U\x05_callU\x01xsb.",
        "array called": b"\x80\x02cnumpy\nndarray\nK\x05\x85R.",
        "new object of a name": b"\x80\x02" + reconstruct + b")\x81.",
        "vast array": good.replace(b"J" + struct.pack("<i", 3072), b"J" + struct.pack("<i", 2**31 - 1), 1),
        "other encoding": b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00xU\x05rot13\x86R.",
        "other type": pickle.dumps({b"data": np.zeros(3)}, 4),
        "registered by number": b"\x80\x02\x82\x01.",
        "persistent": b"\x80\x02U\x01xQ.",
        "cut short": good[:-100],
        "cut in the head": good[:30],
        "empty": b"",
        "no pickle": b"\x1f\x8b\x08\x00 and so on",
        "no dictionary": pickle.dumps([1, 2]),
        "numbers for keys": pickle.dumps({1: 2}),
    }


@pytest.mark.parametrize("kind", hostile("x"))
def test_a_hostile_pickle_is_refused_in_one_sentence_and_nothing_is_done(tmp_path, kind):
    marker = tmp_path / "made"
    path = tmp_path / "data_batch_1"
    path.write_bytes(hostile(marker)[kind])
    with pytest.raises(InputError, match="data_batch_1: is refused") as refused:
        read_pickle(path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400 + len(str(path))
    assert not marker.exists()


def test_the_hostile_pickles_are_hostile_to_an_ordinary_reader(tmp_path):
    for kind in ("os.system", "eval", "old opcode", "nested in a label"):
        marker = tmp_path / kind.replace(" ", "-")
        pickle.loads(hostile(marker)[kind])
        assert marker.exists(), kind


def test_a_refusal_names_the_requested_source(tmp_path):
    (tmp_path / "batch").write_bytes(pickle.dumps(Asks(eval, "1")))
    with pytest.raises(InputError, match=r"it asks for builtins\.eval"):
        read_pickle(tmp_path / "batch")
