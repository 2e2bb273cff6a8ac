"""What a person asks for, before anything is opened."""

import pytest

from propos.runner.request import run_name


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("photos/", "photos"),
        ("linked", "linked"),
        ("Rome, 12.08.2019", "Rome, 12.08.2019"),
        ("photos/.", "photos"),
        ("array.npz", "array"),
        ("cifar-10:test", "cifar-10-test"),
    ],
)
def test_runs_are_called_as_a_person_calls_the_source(tmp_path, monkeypatch, what, name):
    monkeypatch.chdir(tmp_path)
    for folder in ("photos", "elsewhere", "Rome, 12.08.2019"):
        (tmp_path / folder).mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "array.npz").touch()
    assert run_name(what) == name


def test_the_folder_one_is_in_gives_its_name(tmp_path, monkeypatch):
    (tmp_path / "holidays").mkdir()
    monkeypatch.chdir(tmp_path / "holidays")
    assert run_name(".") == run_name("../holidays/") == "holidays"
    assert run_name("..") == tmp_path.name
