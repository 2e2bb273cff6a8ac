"""Exports split into train, val and test, and keywords in XMP sidecars."""

import csv
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from PIL import Image

from helpers.command import command
from helpers.runs import corrected, digit_files, folder_run, make_run
from propos.data import open_folder
from propos.review.export.split import assign_parts, parse_shares, quotas

RDF, DC, LR = (
    "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}",
    "{http://purl.org/dc/elements/1.1/}",
    "{http://ns.adobe.com/lightroom/1.0/}",
)
COPIES = ["exact 0010.png", "lighter 0010.png"]
JUNK = 100
SPLIT = ("train", "val", "test")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run in which three images are the same digit, one of them copied into another class's folder and lighter."""
    root = tmp_path_factory.mktemp("split")
    photos = digit_files(root / "photos")
    original = next(photos.rglob("0010.png"))
    shutil.copyfile(original, photos / COPIES[0])
    pixels = np.asarray(Image.open(original)).astype(float)
    Image.fromarray((pixels * 0.8 + 20).astype(np.uint8)).save(photos / COPIES[1])
    source = open_folder(photos, 8)
    made = make_run(root / "run", photos, source.image_names(), source.batch(np.arange(len(source))))
    return corrected(made.path, {"op": "junk", "images": [made.table.images[JUNK]]})


def export(capsys, run, out, *options):
    result = command(capsys, "export", run.path, "-o", out, *options)
    assert result.code == 0, result.err
    return result


def read_split(path):
    with path.open(newline="", encoding="utf-8") as file:
        return {row["image"]: row for row in csv.DictReader(file)}


def test_a_split_is_stratified_and_separates_no_duplicates(run, tmp_path, capsys):
    result = export(capsys, run, tmp_path / "labels.csv", "--to", "csv", "--split", "80/10/10")
    rows = read_split(tmp_path / "labels.csv")
    assert {name for name, row in rows.items() if row["split"] == ""} == {run.table.images[JUNK]}  # junk
    same = [name for name in rows if name.endswith("0010.png")]
    assert len(same) == 3
    assert len({rows[name]["split"] for name in same}) == 1
    twice = [name for name in rows if name.endswith("0001.png")]
    assert len(twice) == 2
    assert len({rows[name]["split"] for name in twice}) == 1
    parts = Counter(row["split"] for row in rows.values() if row["split"])
    total = sum(parts.values())
    assert f"train {parts['train']}, val {parts['val']}, test {parts['test']}; " in result.out
    by_cluster = defaultdict(Counter)
    for row in rows.values():
        by_cluster[row["cluster"]][row["split"]] += 1
    for cluster, counts in by_cluster.items():
        size = sum(counts.values())
        if cluster != "-1":
            assert abs(counts["train"] - 0.8 * size) <= 3
            assert all(counts[part] for part in SPLIT)
    assert abs(parts["train"] - 0.8 * total) < 0.05 * total


def test_folders_of_a_split_are_as_the_table_says_and_have_equal_classes(run, tmp_path, capsys):
    """As torchvision's ImageFolder needs it: it numbers the classes of each part by themselves."""
    export(capsys, run, tmp_path / "labels.csv", "--to", "csv", "--split", "70/30")
    export(capsys, run, tmp_path / "set", "--to", "folders", "--split", "70/30")
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["README.md", "train", "val"]
    _, head, _ = (tmp_path / "set" / "README.md").read_text(encoding="utf-8").split("---\n")
    (config,) = yaml.safe_load(head)["configs"]
    paths = {each["split"]: each["path"] for each in config["data_files"]}
    assert paths == {"train": "train/**", "validation": "val/**"}
    classes = [sorted(path.name for path in (tmp_path / "set" / part).iterdir()) for part in ("train", "val")]
    assert classes[0] == classes[1]
    assert len(classes[0]) == 10
    rows = read_split(tmp_path / "labels.csv")
    expected = sorted((row["split"], f"cluster {row['cluster']}", name) for name, row in rows.items() if row["split"])
    source = Path(run.config.source).absolute()
    links = [path for path in (tmp_path / "set").rglob("*") if path.is_symlink()]
    found = [
        (*path.relative_to(tmp_path / "set").parts[:2], path.readlink().relative_to(source).as_posix())
        for path in links
    ]
    assert sorted(found) == expected


def test_a_class_that_a_part_lacks_has_an_empty_folder_there(run, tmp_path, capsys):
    """Without it, ImageFolder and YOLO would number that part's classes differently."""
    copy = shutil.copytree(run.path, tmp_path / "run")
    lonely = corrected(copy, {"op": "split", "images": [run.table.images[0]], "into": 10})
    result = export(capsys, lonely, tmp_path / "set", "--to", "folders", "--split", "80/10/10")
    assert "cluster 10" in result.err  # not in every part
    classes = [sorted(path.name for path in (tmp_path / "set" / part).iterdir()) for part in SPLIT]
    assert len(classes[0]) == 11
    assert classes[0] == classes[1] == classes[2]
    sizes = sorted(len(list((tmp_path / "set" / part / "cluster 10").iterdir())) for part in SPLIT)
    assert sizes == [0, 0, 1]


@pytest.mark.parametrize("text", ["80/10", "80/10/10/0", "100", "a/b", "100/0", "80/20/", "-20/120"])
def test_a_wrong_split_is_refused(run, tmp_path, capsys, text):
    result = command(capsys, "export", run.path, "--to", "csv", "-o", tmp_path / "a.csv", f"--split={text}")
    assert result.code == 2
    assert result.err.endswith(": give percentages that add up to 100, as 80/10/10 or 80/20\n")
    other = command(capsys, "export", run.path, "--to", "coco", "-o", tmp_path / "a.json", "--split", "80/20")
    assert other.err == "propos: --split: only available with --to csv, parquet, json and folders\n"
    assert list(tmp_path.iterdir()) == []


def test_parts_are_filled_by_quota_and_groups_stay_whole():
    assert quotas(10, [80, 10, 10], 10) == [8, 1, 1]
    assert quotas(5, [80, 10, 10], 5) == [3, 1, 1]
    assert quotas(5, [80, 10, 10], 2) == [4, 1, 0]
    # A burst of six of cluster 0 and a pair across both clusters; two images are junk.
    cluster = np.array([0] * 10 + [1] * 10 + [-1] * 2)
    together = [[0, 1, 2, 3, 4, 5], [9, 10]]
    part = assign_parts(cluster, list(range(20)), together, parse_shares("60/20/20"))
    assert part[20:].tolist() == [-1, -1]
    assert [len(set(part[group].tolist())) for group in together] == [1, 1]
    assert [np.bincount(part[:10]).tolist(), np.bincount(part[10:20]).tolist()] == [[6, 2, 2], [6, 2, 2]]


def test_sidecars_hold_names_as_keywords(tmp_path, capsys):
    made = folder_run(tmp_path)
    name = "animals | <dogs> & \"cats\" 'ä' ]]>"
    run = corrected(
        made.path, {"op": "rename", "cluster": 0, "name": name}, {"op": "rename", "cluster": 1, "name": "x"}
    )
    before = {path: path.read_bytes() for path in (tmp_path / "photos").rglob("*") if path.is_file()}
    result = export(capsys, run, tmp_path / "out", "--to", "xmp")
    assert {path: path.read_bytes() for path in (tmp_path / "photos").rglob("*") if path.is_file()} == before
    files = {path.relative_to(tmp_path / "out").as_posix(): path for path in (tmp_path / "out").rglob("*.xmp")}
    cluster = dict(zip(run.table.images, run.table.cluster.tolist(), strict=True))
    assert set(files) == {f"{image}.xmp" for image, number in cluster.items() if number in (0, 1)}
    assert result.out.startswith(f"{len(files)} images: ")
    inner = "<dogs> & \"cats\" 'ä' ]]>"
    expected = {0: (["animals", inner], [f"animals|{inner}"]), 1: (["x"], ["x"])}
    for image, path in files.items():
        tree = ElementTree.parse(path)
        found = tuple(
            [item.text for item in tree.iterfind(f".//{tag}/{RDF}Bag/{RDF}li")]
            for tag in (f"{DC}subject", f"{LR}hierarchicalSubject")
        )
        assert found == expected[cluster[image.removesuffix(".xmp")]]


def test_sidecars_need_a_name(run, tmp_path, capsys):
    result = command(capsys, "export", run.path, "--to", "xmp", "-o", tmp_path / "out")
    assert (result.code, list(tmp_path.iterdir())) == (2, [])
    assert "no cluster has a name" in result.err
