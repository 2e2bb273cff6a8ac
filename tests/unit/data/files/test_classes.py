"""Folders that are classes, and folders that are splits of a data set."""

import pytest

from propos.data import folder_labels

CASES = {
    "classes alone": (["cat/1.jpg", "dog/2.jpg"], ["cat", "dog"], []),
    "no folder": (["1.jpg", "cat/2.jpg"], ["", "cat"], []),
    "splits": (["train/cat/1.jpg", "val/cat/2.jpg", "val/dog/3.jpg"], ["cat", "cat", "dog"], ["train", "val"]),
    "other names": (
        ["Training/a/1.jpg", "Testing/a/1.jpg", "VALID/b/1.jpg", "validation/b/1.jpg", "test/a/1.jpg"],
        ["a", "a", "b", "b", "a"],
        ["Testing", "Training", "VALID", "test", "validation"],
    ),
    "below another folder": (["set/train/cat/1.jpg", "set/val/cat/2.jpg"], ["cat", "cat"], ["set/train", "set/val"]),
    "unpacked twice": (["train/train/cat/1.jpg", "test/cat/1.jpg"], ["cat", "cat"], ["test", "train/train"]),
    "nested classes": (["train/pets/cat/1.jpg", "val/pets/cat/1.jpg"], ["pets/cat"] * 2, ["train", "val"]),
    "a class called test": (["cat/1.jpg", "test/2.jpg"], ["cat", "test"], []),
    "a class called test in splits": (["train/test/1.jpg", "val/test/2.jpg"], ["test", "test"], ["train", "val"]),
    "a split with images of its own": (["train/cat/1.jpg", "test/2.jpg"], ["cat", "test"], ["train"]),
    "a class with folders": (["test/1.jpg", "test/old/2.jpg"], ["test", "test/old"], []),
    "below a class": (["cat/1.jpg", "cat/test/a/2.jpg"], ["cat", "cat/test/a"], []),
    "a picture at the root": (["cover.jpg", "train/cat/1.jpg"], ["", "cat"], ["train"]),
    "a list of absolute paths": (
        ["/data/train/cat/1.jpg", "/data/val/cat/2.jpg"],
        ["cat"] * 2,
        ["/data/train", "/data/val"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_class_is_the_folder_below_a_split(case):
    images, classes, splits = CASES[case]
    found = folder_labels(images)
    assert (found.classes, found.splits) == (classes, splits)


def test_what_was_taken_for_what_is_said():
    assert str(folder_labels(["a/1", "b/1", "c/1", "d/1"])) == "4 classes by folder (a, b, c, …)"
    assert str(folder_labels(["1"])) == "1 class by folder (none)"
    said = "2 classes by folder (a, b); taken for splits, not for classes: train, val"
    assert str(folder_labels(["train/a/1", "val/b/1"])) == said
