"""Options given again with --resume: what agrees with the run is accepted, what differs is named."""

from pathlib import Path

import pytest

from helpers.small import quick_config
from propos.common.errors import InputError
from propos.runner import Length, Origin, Output, Request
from propos.runner.run import find_run_to_resume
from propos.runs import RunFolder

COMMAND = "propos run digits -k 10 --time 30m --from earlier/run"


def began(**settings):
    """Return the settings of a run of digits."""
    return quick_config(**settings).with_settings({"source": "digits"})


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A run of digits that was stopped."""
    monkeypatch.chdir(tmp_path)
    config = began(clusters=10, seed=3, train__epochs=7)
    info = {"status": "interrupted", "command": COMMAND, "from": str(tmp_path / "earlier" / "run")}
    return RunFolder.create(tmp_path / "run", info, config).path


def resumed(path, **asked):
    return find_run_to_resume(Request(source="digits", output=Output(out=path), **asked)).path


AGREEING = {
    "nothing": {},
    "numbers": {"seed": 3, "length": Length(epochs=7), "clusters": "10"},
    "names": {"method": "propos", "recipe": "digits", "origin": Origin(start="scratch")},
    "settings": {"settings": {"propos.psl_weight": 0.1, "network.hidden": 32, "views.crop_scale": [0.6, 1.0]}},
    "a time, by the command": {"length": Length(time="30m")},
    "a run before it": {"origin": Origin(earlier=Path("earlier/run"))},
    "its own settings": {"config": Path("run/config.yaml"), "seed": 3},
}


@pytest.mark.parametrize("case", AGREEING)
def test_what_agrees_is_accepted(run, case):
    assert resumed(run, **AGREEING[case]) == run


DIFFERING = {
    "a seed": ({"seed": 4}, "seed = 3, not 4: to resume it, leave out --seed"),
    "one of two": (
        {"seed": 3, "length": Length(epochs=8)},
        "train.epochs = 7, not 8: to resume it, leave out --epochs",
    ),
    "two": (
        {"seed": 4, "settings": {"propos.psl_weight": 0.2, "network.hidden": 32}},
        "seed = 3, not 4 and propos.psl_weight = 0.1, not 0.2: to resume it, leave out --seed, --set",
    ),
    "a number of clusters": ({"clusters": 5}, "clusters = 10, not 5: to resume it, leave out -k"),
    "a range": ({"clusters": (5, 9)}, r"suggest.range = None, not \(5, 9\): to resume it, leave out -k"),
    "a method": ({"method": "byol"}, "method = propos, not byol: to resume it, leave out --method"),
    "a time": ({"length": Length(time="40m")}, "train.epochs = 7, not --time 40m: to resume it, leave out --time"),
    "a start": (
        {"origin": Origin(start="pretrained")},
        "--start scratch, not pretrained: to resume it, leave out --start",
    ),
    "weights": (
        {"origin": Origin(weights=Path("w.pth"))},
        "--weights None, not w.pth: to resume it, leave out --weights",
    ),
    "a run before it": (
        {"origin": Origin(earlier=Path("other"))},
        "/earlier/run, not other: to resume it, leave out --from",
    ),
    "pixels": ({"settings": {"pixels.white": 255.0}}, "pixels.white = 16.0, not 255.0: to resume it, leave out --set"),
}


@pytest.mark.parametrize("case", DIFFERING)
def test_what_differs_is_named(run, case):
    asked, said = DIFFERING[case]
    with pytest.raises(InputError, match=f"run: the run started with .*{said}$"):
        resumed(run, **asked)


def test_settings_of_another_run_differ(run):
    text = (run / "config.yaml").read_text()
    (run.parent / "other.yaml").write_text(text.replace("seed: 3", "seed: 5"))
    with pytest.raises(InputError, match="seed = 3, not 5: to resume it, leave out --config"):
        resumed(run, config=Path("other.yaml"))


def test_a_value_that_no_run_can_have_is_refused_as_always(run):
    with pytest.raises(InputError, match=r"train\.epochs = 0"):
        resumed(run, length=Length(epochs=0))


def test_a_range_that_was_cut_to_the_images_is_that_of_the_command(run):
    config = began(clusters=4, suggest__range=(2, 30))
    for name, range_ in (("began", "2..40"), ("other", "2..50")):
        RunFolder.create(
            run.parent / name, {"status": "interrupted", "command": f"propos run digits -k {range_}"}, config
        )
    assert resumed(run.parent / "began", clusters="2..40").name == "began"
    with pytest.raises(InputError, match=r"suggest\.range"):
        resumed(run.parent / "other", clusters="2..40")
