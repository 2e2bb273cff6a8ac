import csv
import json

import numpy as np
import pyarrow.parquet
import pytest

from propos.runs import ImageTable, write_parts


def part(*names):
    count = len(names)
    return ImageTable(
        list(names), np.arange(count), np.full(count, 0.5), np.full(count, 0.25), np.array([*names], dtype=str)
    )


def rows(path):
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    if path.suffix == ".json":
        return json.loads(path.read_text())
    with path.open(newline="") as file:
        return [
            {"id": int(row["id"]), "cluster": int(row["cluster"]), "image": row["image"], "label": row["label"]}
            for row in csv.DictReader(file)
        ]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_parts_make_one_table_in_their_order(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    assert write_parts((part("a", 'b "x", é'), part(), part("c")), path) == 3
    found = rows(path)
    assert [row["image"] for row in found] == ["a", 'b "x", é', "c"]
    assert [row["id"] for row in found] == [0, 1, 2]
    assert [row["cluster"] for row in found] == [0, 1, 0]
    assert [row["label"] for row in found] == ["a", 'b "x", é', "c"]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_stops_half_way_leaves_the_old_table_and_nothing_else(tmp_path, ending, error):
    path = tmp_path / f"table.{ending}"
    path.write_text("old")

    def parts():
        yield part("a")
        raise error

    with pytest.raises(error):
        write_parts(parts(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
