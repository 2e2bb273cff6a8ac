import pytest

from helpers.official import cifar_10, mnist
from propos.common.errors import InputError
from propos.data import CATALOGUE, find_source, is_benchmark, is_named

NAMES = [
    "cifar-10", "cifar-20", "stl-10", "imagenet-10", "imagenet-dogs", "tiny-imagenet", "imagenet-1k", "imagenet-50",
    "imagenet-100", "imagenet-200", "cifar-10-lt", "cifar-20-lt", "fashion-mnist", "mnist",
]  # fmt: skip


def test_the_catalogue_names_the_sets_of_the_paper():
    assert list(CATALOGUE) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_set_that_is_not_there_is_one_sentence_with_where_to_get_it_and_where_to_put_it(tmp_path, name):
    with pytest.raises(InputError) as missing:
        find_source(name, data=tmp_path)
    sentence = str(missing.value)
    assert sentence.startswith(f"{name}: not found: get it from http")
    assert f"and put it at {tmp_path / CATALOGUE[name].folders[0]}" in sentence
    assert ("propos datasets fetch" in sentence) == (not name.startswith("imagenet"))
    assert "\n" not in sentence


def test_the_data_root_is_given_or_in_the_environment(tmp_path, monkeypatch):
    mnist(tmp_path / "mnist")
    monkeypatch.delenv("PROPOS_DATA", raising=False)
    with pytest.raises(InputError, match="mnist: data folder not set: give --data FOLDER, or set PROPOS_DATA"):
        find_source("mnist")
    monkeypatch.setenv("PROPOS_DATA", str(tmp_path))
    assert find_source("mnist").images == 8
    with pytest.raises(InputError, match="not found"):
        find_source("mnist", data=tmp_path / "elsewhere")


def test_a_path_that_exists_wins_over_a_name(tmp_path, monkeypatch):
    cifar_10(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert is_benchmark("cifar-10")
    assert is_named("digits")
    (tmp_path / "cifar-10").mkdir()
    (tmp_path / "digits").mkdir()
    for name in ("cifar-10", "digits"):
        assert not is_named(name)
        with pytest.raises(InputError, match="there are no images in it"):
            find_source(name, data=tmp_path)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cifar10", "cifar-10"),
        ("CIFAR-10", "cifar-10"),
        ("cifar_20", "cifar-20"),
        ("imagenet-dog:val", "imagenet-dogs:val"),
        ("fashionmnist", "fashion-mnist"),
        ("digit", "digits"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(written, meant):
    with pytest.raises(InputError, match=rf"{written}: no such file, folder or data set; did you mean {meant}\?"):
        find_source(written)


def test_other_paths_are_no_misspelt_names():
    with pytest.raises(InputError, match="holidays: no such file or folder; give a folder of images"):
        find_source("holidays")


def test_an_unknown_split_is_answered_with_the_known(tmp_path):
    with pytest.raises(InputError, match=r"cifar-10 has no split val: choose from train\+test, train, test"):
        find_source("cifar-10:val", data=tmp_path)


def test_labels_from_folders_are_refused_where_a_set_has_its_own(tmp_path):
    with pytest.raises(InputError, match="cifar-10 has labels of its own"):
        find_source("cifar-10", labels="folders", data=tmp_path)
