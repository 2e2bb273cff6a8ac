"""Ways to damage one file of a run folder: its bytes, or what it holds, as a careless hand or a stranger might."""

import hashlib
import io
import json
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import safetensors.numpy
import yaml
from numpy.lib import format as npy

VALUES = [
    None, True, -1, 0, 1, 2, 3, 0.5, -0.5, 10**20, 1e300, float("nan"), float("inf"), "", "x", "a\nb", "é" * 200,
    [], {}, [[]], [1, 2, 3], {"a": {"b": None}}, [None], "cpu", "finished", "/nowhere",
]  # fmt: skip


def damaged(name, content, rng):
    """Return the content of a file after one damage, and the words for it; None where the file is to go."""
    kinds = {"json": in_json, "jsonl": in_lines, "yaml": in_yaml, "npy": in_array, "parquet": in_table}
    kinds["safetensors"] = in_checkpoint if name.startswith("checkpoint/0") else in_weights
    inside = kinds.get(name.rsplit(".", 1)[-1], in_bytes)
    way = rng.choice([in_bytes, inside, inside, inside])
    return way(content, rng)


def in_bytes(content, rng):
    at = rng.randrange(len(content) + 1)
    ways = {
        "gone": lambda: None,
        "empty": lambda: b"",
        "cut short": lambda: content[:at],
        "a byte changed": lambda: content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :],
        "a bit flipped": lambda: flipped(content, at, rng),
        "more at its end": lambda: content + content[:at] + b"\0",
        "a hole in it": lambda: content[:at] + b"\0" * len(content[at : at + 64]) + content[at + 64 :],
        "a part left out": lambda: content[:at] + content[at + rng.randrange(1, 64) :],
        "a part twice": lambda: content[:at] + content[max(0, at - 40) :],
        "a picture": lambda: b"\x89PNG\r\n\x1a\n" + content[:at],
    }
    return chosen(ways, rng)


def flipped(content, at, rng):
    at = min(at, len(content) - 1)
    return content[:at] + bytes([content[at] ^ (1 << rng.randrange(8))]) + content[at + 1 :] if content else b"\1"


def chosen(ways, rng):
    words = rng.choice(sorted(ways))
    return ways[words](), words


def in_json(content, rng):
    tree, words = mutated(json.loads(content), rng)
    ways = {
        "a value": lambda: json.dumps(tree).encode(),
        "deep": lambda: b"[" * rng.choice([25, 900, 100_000]),
        "digits": lambda: b'{"schema": ' + b"9" * rng.choice([25, 6_000]) + b"}",
        "twice": lambda: content + content,
    }
    made, which = weighted(ways, "a value", rng)
    return made, words if which == "a value" else which


def weighted(ways, usual, rng):
    words = usual if rng.random() < 0.85 else rng.choice(sorted(ways))
    return ways[words](), words


def mutated(tree, rng):
    """Change, drop or add one value somewhere in a tree."""
    places = list(_places(tree))
    holder, key = rng.choice(places)
    way = rng.choice(["changed", "changed", "changed", "dropped", "added"])
    value = rng.choice(VALUES)
    if way == "changed":
        holder[key] = value
    elif way == "dropped":
        del holder[key]
    elif isinstance(holder, dict):
        holder[rng.choice(["new", "a\nb", ""])] = value
    else:
        holder.append(value)
    return tree, f"{key} {way}: {value!r:.30}"


def _places(tree):
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    for key, value in items:
        yield tree, key
        yield from _places(value)


def in_lines(content, rng):
    lines = content.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    ways = {
        "a value": lambda: b"".join([*lines[:at], json.dumps(mutated(json.loads(lines[at]), rng)[0]).encode(), b"\n"]),
        "a line gone": lambda: b"".join(lines[:at] + lines[at + 1 :]),
        "a line twice": lambda: b"".join(lines[:at] + lines[at:] + lines[at:]),
        "an empty line": lambda: b"".join([*lines[:at], b"\n", *lines[at:]]),
        "deep": lambda: b"".join([*lines[:at], b"[" * 100_000]),
        "another line": lambda: b"".join([*lines[:at], json.dumps(rng.choice(VALUES)).encode()]),
    }
    return weighted(ways, "a value", rng)


def in_yaml(content, rng):
    tree, words = mutated(yaml.safe_load(content), rng)
    ways = {
        "a value": lambda: yaml.safe_dump(tree, sort_keys=False).encode(),
        "anchors": lambda: b"a: &a [1]\nb: [" + b"*a, " * 9 + b"*a]\n" + content,
        "recursive": lambda: b"source: &a [*a]\n",
        "deep": lambda: b"source: " + b"[" * 50_000,
        "digits": lambda: b"seed: " + b"9" * rng.choice([25, 6_000]) + b"\n",
        "twice": lambda: content + content,
        "a date": lambda: b"seed: 2001-02-31\n",
        "a tag": lambda: b"seed: !!python/object:os.system {}\n",
    }
    made, which = weighted(ways, "a value", rng)
    return made, words if which == "a value" else which


def in_array(content, rng):
    array = np.load(io.BytesIO(content))
    spot = tuple(rng.randrange(length) for length in array.shape)
    ways = {
        "float64": lambda: array.astype(np.float64),
        "float16": lambda: array.astype(np.float16),
        "whole numbers": lambda: array.astype(np.int32),
        "big end first": lambda: array.astype(">f4"),
        "complex": lambda: array.astype(np.complex64),
        "text": lambda: array.astype("U8"),
        "objects": lambda: array.astype(object),
        "a column more": lambda: np.concatenate([array, array[:, :1]], axis=1),
        "a column fewer": lambda: array[:, 1:],
        "a row more": lambda: np.concatenate([array, array[:1]]),
        "a row fewer": lambda: array[1:],
        "no rows": lambda: array[:0],
        "no columns": lambda: array[:, :0],
        "flat": lambda: array.ravel(),
        "one number": lambda: array[0, 0],
        "an axis more": lambda: array[None],
        "turned": lambda: np.ascontiguousarray(array.T),
        "columns first": lambda: np.asfortranarray(array),
        "rows swapped": lambda: array[::-1],
        "all 0": lambda: 0 * array,
        "large": lambda: array * np.float32(1e30),
        "NaN": lambda: put(array, spot, np.nan),
        "infinity": lambda: put(array, spot, np.inf),
    }
    if rng.random() < 0.2:
        return chosen(
            {
                "npz": lambda: npz_bytes(array),
                "huge": lambda: huge(array, rng.choice([(1 << 37, 1), (1 << 62, 16), (-3, -3), (10**30, 2)])),
                "version 2": lambda: array_bytes(array, (2, 0)),
                "version 3": lambda: array_bytes(array, (3, 0)),
            },
            rng,
        )
    made, words = chosen(ways, rng)
    return array_bytes(made), words


def put(array, spot, value):
    array = array.copy()
    array[spot] = value
    return array


def array_bytes(array, version=None):
    file = io.BytesIO()
    npy.write_array(file, np.asanyarray(array), version=version, allow_pickle=True)
    return file.getvalue()


def npz_bytes(array):
    file = io.BytesIO()
    np.savez(file, array)
    return file.getvalue()


def huge(array, shape):
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue() + array.tobytes()


def in_table(content, rng):
    table = pyarrow.parquet.read_table(io.BytesIO(content))
    place = rng.randrange(len(table.column_names))
    name, column, rows = table.column_names[place], table.column(place), len(table)
    plain = column.to_pylist()
    row = rng.randrange(rows)

    def with_column(values, kind=None):
        return table.set_column(place, name, pa.array(values, kind))

    other = rng.choice([-1, 10**6, 2**40, 0.5, float("nan"), float("inf"), "x", "a\nb", True, [1], {"a": 1}])
    ways = {
        "a column gone": lambda: table.drop_columns([name]),
        "a column renamed": lambda: table.rename_columns({name: "other"}),
        "a column twice": lambda: table.append_column(name, column),
        "a column more": lambda: table.append_column("more", column),
        "a null": lambda: with_column([*plain[:row], None, *plain[row + 1 :]], column.type),
        "all null": lambda: with_column([None] * rows, column.type),
        "nothing but nulls": lambda: with_column(pa.nulls(rows)),
        "text": lambda: with_column([str(value) for value in plain]),
        "long text": lambda: with_column([str(value) for value in plain], pa.large_string()),
        "bytes": lambda: with_column([str(value).encode() for value in plain]),
        "a dictionary": lambda: table.set_column(place, name, column.combine_chunks().dictionary_encode()),
        "lists": lambda: with_column([[value] for value in plain]),
        "other values": lambda: with_column([other] * rows),
        "one value": lambda: with_column([plain[row]] * rows),
        "turned round": lambda: with_column(plain[::-1], column.type),
        "numbers": lambda: with_column(list(range(rows)), pa.float64()),
        "small numbers": lambda: with_column([0] * rows, pa.int8()),
        "dates": lambda: with_column([0] * rows, pa.date32()),
        "no rows": lambda: table[:0],
        "a row fewer": lambda: table[1:],
        "rows twice": lambda: pa.concat_tables([table, table]),
        "no columns": lambda: table.select([]),
    }
    made, words = chosen(ways, rng)
    file = io.BytesIO()
    pyarrow.parquet.write_table(made, file, compression=rng.choice(["snappy", "none", "zstd"]))
    return file.getvalue(), f"{name}: {words}"


def in_weights(content, rng):
    tensors = safetensors.numpy.load(content)
    if rng.random() < 0.1 or not tensors:
        return in_header(content, rng)
    return safetensors.numpy.save(*changed_tensors(tensors, rng)[:1]), "a tensor"


def changed_tensors(tensors, rng):
    name = rng.choice(sorted(tensors))
    array = tensors[name]
    spot = tuple(rng.randrange(length) for length in array.shape) if array.size else None
    number = array.dtype.type(rng.choice([-1, 10**6]))
    ways = {
        "gone": lambda: None,
        "half": lambda: array.astype(np.float16),
        "double": lambda: array.astype(np.float64),
        "whole": lambda: array.astype(np.int32),
        "flat": lambda: array.ravel(),
        "an axis more": lambda: array[None],
        "turned": lambda: np.ascontiguousarray(array.T),
        "empty": lambda: array.ravel()[:0],
        "one fewer": lambda: np.ascontiguousarray(array[1:]) if array.ndim else array[None],
        "a number": lambda: put(array, spot, number) if spot is not None else array,
        "large": lambda: (array * 1e30).astype(array.dtype) if array.dtype.kind == "f" else array + 10**12,
        "NaN": lambda: put(array, spot, np.nan) if array.dtype.kind == "f" and spot is not None else array[None],
        "all 0": lambda: 0 * array,
    }
    made, words = chosen(ways, rng)
    rest = {key: value for key, value in tensors.items() if key != name}
    if rng.random() < 0.1:
        rest |= {f"{name}.more": array}
    return rest if made is None else {**rest, name: np.array(made)}, f"{name}: {words}"


def in_header(content, rng):
    length = int.from_bytes(content[:8], "little")
    ways = {
        "a long header": lambda: struct.pack("<Q", rng.choice([1 << 60, 1 << 25, length + 1])) + content[8:],
        "no header": lambda: content[8 + length :],
        "a shape": lambda: content.replace(b'"shape":[', b'"shape":[9', 1),
        "a huge shape": lambda: content.replace(b'"shape":[', b'"shape":[4611686018427387904,', 1),
        "a type": lambda: content.replace(b'"F32"', b'"F8_E4M3"' if rng.random() < 0.5 else b'"I32"', 1),
    }
    return chosen(ways, rng)


def in_checkpoint(content, rng):
    """Change a tensor or the plain state of a checkpoint; the caller renames it by its new hash."""
    tensors = safetensors.numpy.load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    state, words = json.loads(header["__metadata__"]["state"]), "as it was"
    if rng.random() < 0.5:
        tensors, words = changed_tensors(tensors, rng)
    else:
        state, words = mutated(state, rng)
    return safetensors.numpy.save(tensors, {"state": json.dumps(state)}), words


def checkpoint_name(name, content):
    """Return the name that says a checkpoint is as it was written."""
    return f"{name[: name.rindex('/') + 8]}{hashlib.sha256(content).hexdigest()[:32]}.safetensors"
