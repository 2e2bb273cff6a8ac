import pytest

from propos.common.durations import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (5_390, "90 min"), (5_400, "1.5 h"), (360_000, "100.0 h")],
)
def test_a_length_of_time_is_written_as_people_say_it(seconds, words):
    assert duration(seconds) == words
