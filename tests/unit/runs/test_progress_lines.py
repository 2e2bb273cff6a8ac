import pytest

from propos.runs import ProgressLines, read_progress
from propos.runs.progress_lines import PROGRESS, seconds_left


def test_the_last_whole_line_counts(tmp_path):
    lines = ProgressLines(tmp_path)
    assert read_progress(tmp_path) is None
    with lines.task("Reading images"), lines.task("Training"):
        assert read_progress(tmp_path)["doing"] == "Training"
    with (tmp_path / PROGRESS).open("a") as file:
        file.write('{"doing": "Writ')  # as a killed process leaves it, or one that is just writing
    assert read_progress(tmp_path)["doing"] == "Training"
    lines.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\n", b"[1]\n", b'{"doing": 3}\n', b"x" * 10_000], ids=range(5))
def test_a_damaged_file_is_no_progress(tmp_path, content):
    (tmp_path / PROGRESS).write_bytes(content)
    assert read_progress(tmp_path) is None


def test_a_folder_that_is_missing_stops_no_run(tmp_path):
    lines = ProgressLines(tmp_path / "missing")
    with lines.task("Training") as update:
        update(1, 2)
    lines.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_rest_takes_as_long_for_each_as_so_far():
    assert seconds_left(elapsed=10, done=25, rest=75) == 30
    assert seconds_left(elapsed=10, done=0, rest=100) is None
    assert seconds_left(elapsed=10, done=5, rest=-5) is None  # the total is not known
