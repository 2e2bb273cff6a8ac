"""The folders that Studio may use: links, odd names, and folders that were dropped."""

import os
from pathlib import Path

import pytest
from PIL import Image

from propos.common.errors import InputError
from propos.data import escape_name
from propos.review.studio.places import Places


@pytest.fixture
def root(tmp_path):
    (tmp_path / "mine" / "photos" / "deep").mkdir(parents=True)
    (tmp_path / "theirs").mkdir()
    for number in range(3):
        Image.new("RGB", (4, 4)).save(tmp_path / "mine" / "photos" / "deep" / f"{number}.png")
    return tmp_path / "mine"


def test_a_link_may_lead_within_the_folders_and_not_out_of_them(root):
    places = Places([root])
    (root / "inside").symlink_to(root / "photos")
    (root / "outside").symlink_to(root.parent / "theirs")
    (root / "circle").symlink_to(root / "circle")
    assert places.folder(str(root / "inside")) == root / "photos"
    for name in ("outside", "outside/..", "../theirs", "circle", "inside/../../theirs", "nothing"):
        with pytest.raises(InputError):
            places.folder(str(root / name))


def test_the_allowed_folder_itself_may_be_a_link(root):
    link = root.parent / "link"
    link.symlink_to(root)
    assert Places([link]).folder(str(link / "photos")) == root / "photos"


@pytest.mark.parametrize("name", ["two words", "100% #5?&", "ünïcødé", os.fsdecode(b"caf\xe9"), "back\\slash", "a\nb"])
def test_any_name_is_listed_so_that_it_can_be_chosen(root, name):
    (root / name).mkdir()
    places = Places([root])
    (listed,) = [each for each in places.look(None)["folders"] if each["name"] == escape_name(name)]
    assert listed["path"].isprintable()
    assert places.folder(listed["path"]) == root / name
    assert places.look(listed["path"])["parent"] == escape_name(str(root))


def test_pictures_come_from_below_hidden_ones_do_not(root):
    (root / ".secret").mkdir()
    Image.new("RGB", (4, 4)).save(root / ".secret" / "hidden.png")
    (root / "photos" / "called.png").write_text("no picture")
    found = Places([root]).look(str(root))
    assert [Path(each).name for each in found["pictures"]] == ["0.png", "1.png", "2.png"]
    assert [each["name"] for each in found["folders"]] == ["photos"]


def test_several_roots_are_listed_first_and_nothing_is_above_them(root):
    places = Places([root, root.parent / "theirs"])
    assert [each["path"] for each in places.look(None)["folders"]] == [str(root), str(root.parent / "theirs")]
    assert places.look(str(root))["parent"] == ""
    assert Places([root]).look(None)["parent"] is None


def test_what_is_written_must_be_new_and_inside(root):
    places = Places([root])
    assert places.output(str(root / "sorted")) == root / "sorted"
    (root / "outside").symlink_to(root.parent / "theirs")
    (root / "gone").symlink_to(root / "nothing")
    for name in ("photos", "gone", "outside/x", "no/x", "..", "../x", ""):
        with pytest.raises(InputError):
            places.output(f"{root}/{name}" if name else "")


def test_a_dropped_folder_is_found_by_its_name_and_files(root):
    (root / "other" / "deep").mkdir(parents=True)
    places = Places([root])
    assert places.find("deep", ["0.png", "2.png"]) == str(root / "photos" / "deep")
    assert places.find("deep", []) == str(root / "other" / "deep")
    for name, files in (("deep", ["9.png"]), ("theirs", []), ("..", [])):
        with pytest.raises(InputError):
            places.find(name, files)
