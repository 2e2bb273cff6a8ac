import pytest
import yaml

from propos.common.errors import InputError
from propos.config import Config, from_yaml, keys, parse_assignment, parse_clusters
from propos.methods import complete_sections, method_names, settings_of
from propos.runner.recipes import RECIPES, build_recipe


def test_the_defaults_are_the_papers():
    config = Config()
    own = settings_of(config)
    assert (own.psl_weight, own.temperature, own.sigma) == (0.1, 0.5, 0.001)
    assert (config.train.epochs, config.train.batch_size, config.train.lr, config.train.warmup) == (1000, 256, 0.05, 50)
    assert (config.network.hidden, config.network.dimension, config.network.momentum) == (4096, 256, 0.996)
    assert (config.estep.every, config.estep.restarts) == (1, 10)
    assert config.views.crop_scale == (0.08, 1.0)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_survives_being_written_and_read(name):
    config = complete_sections(build_recipe(name))
    assert from_yaml(config.to_yaml(), "file") == config


@pytest.mark.parametrize(
    ("assignment", "suggestion"),
    [
        ("train.eopchs=3", "train.epochs"),
        ("train.length=3", "train."),
        ("epochs=3", "train.epochs"),
        ("trian.epochs=3", "train.epochs"),
        ("views.filp=0", "views.flip"),
    ],
)
def test_a_misspelt_key_is_refused_with_the_nearest_right_one(assignment, suggestion):
    with pytest.raises(InputError, match="unknown key") as error:
        parse_assignment(assignment)
    assert f"did you mean {suggestion}" in str(error.value)


def test_a_misspelt_key_in_a_file_is_refused():
    with pytest.raises(InputError, match=r"run\.yaml: unknown key train\.eopchs: did you mean train\.epochs\?"):
        from_yaml("train: {eopchs: 2}", "run.yaml")


def test_a_misspelt_setting_of_a_method_is_refused_with_the_nearest_right_one():
    misspelt = from_yaml("propos: {psl_wieght: 0.2}", "run.yaml")
    with pytest.raises(
        InputError, match=r"run\.yaml: unknown key propos\.psl_wieght: did you mean propos\.psl_weight\?"
    ):
        complete_sections(misspelt, "run.yaml")


def test_settings_of_a_method_that_is_not_the_runs_are_refused():
    with pytest.raises(InputError, match=r"byol\.predictor_rate: the method is propos, which does not read it"):
        complete_sections(Config().with_settings({"byol.predictor_rate": 1.0}))


@pytest.mark.parametrize("method", method_names())
def test_complete_sections_are_those_of_the_method_and_of_what_it_builds_on(method):
    complete = complete_sections(Config(method=method))
    pretext = complete.sections[method].get("pretext")
    assert list(complete.sections) == ([method] if pretext is None else [method, pretext])
    assert complete_sections(complete) == complete
    assert from_yaml(complete.to_yaml(), "file") == complete


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("train.epochs", 2.5),
        ("train.epochs", 0),
        ("train.epochs", True),
        ("train.batch_size", 1),
        ("views.preset", "sepia"),
        ("views.crop_scale", (0.9, 0.1)),
        ("views.blur", 1.5),
        ("views.blur", True),
        ("views.blur", "often"),
        ("views.blur", (0.1, 0.2, 0.3)),
        ("views.solarise", (0.1, -0.2)),
        ("network.momentum", 1.5),
        ("network.backbone", "resnet19"),
        ("train.lr", float("nan")),
        ("propos.psl_weight", "much"),
        ("propos.psl_weight", -1.0),
        ("propos.psl_weight", float("nan")),
        ("propos.temperature", 0.0),
        ("propos.psl_start", -1),
    ],
)
def test_a_wrong_value_is_refused_by_name(key, value):
    with pytest.raises(InputError) as error:
        complete_sections(Config().with_settings({key: value}))
    assert key in str(error.value)
    assert "\n" not in str(error.value)


def test_values_on_the_command_line_are_read_as_people_write_them():
    assert parse_assignment("propos.sigma=1e-3") == ("propos.sigma", 0.001)
    assert parse_assignment("train.epochs=20") == ("train.epochs", 20)
    assert parse_assignment("views.crop_scale=[0.5, 1]") == ("views.crop_scale", [0.5, 1])
    assert parse_assignment("propos.psl_start=null") == ("propos.psl_start", None)


def test_a_whole_number_serves_where_a_float_is_meant():
    assert Config().with_settings({"train.lr": 1}).train.lr == 1.0
    assert settings_of(Config().with_settings({"propos.psl_weight": 1})).psl_weight == 1.0


def test_one_probability_of_blur_is_for_both_views_and_two_are_for_one_each():
    assert Config().views.blur == Config().views.solarise == (0.0, 0.0)
    config = Config().with_settings({"views.blur": 1, "views.solarise": [0, 0.2]})
    assert config.views.blur == (1.0, 1.0)
    assert config.views.solarise == (0.0, 0.2)
    assert from_yaml(config.to_yaml(), "file") == config


@pytest.mark.parametrize("assignment", ["train.lr", "train=3", "propos=3", "train.lr=[1"])
def test_a_malformed_assignment_is_refused(assignment):
    with pytest.raises(InputError):
        Config().with_settings(dict([parse_assignment(assignment)]))


def test_a_new_preset_brings_its_own_views_and_keeps_other_settings():
    config = Config().with_settings({"views.preset": "digits", "views.rotation": 3.0})
    assert config.views.flip == 0.0
    assert config.views.rotation == 3.0
    assert config.views.size == 32


def test_another_length_keeps_the_proportions():
    short = build_recipe("digits").with_epochs(20)
    full = build_recipe("digits")
    assert short.train.epochs == 20
    assert short.train.warmup == round(full.train.warmup * 20 / full.train.epochs)
    starts = [config.sections["propos"]["psl_start"] for config in (short, full)]
    assert starts[0] == round(starts[1] * 20 / full.train.epochs)
    own = Config().with_settings({"propos.psl_start": 100, "cc-psl.psl_start": None}).with_epochs(500)
    assert own.sections == {"propos": {"psl_start": 50}, "cc-psl": {"psl_start": None}}


def test_keys_are_those_of_the_written_file():
    tree = yaml.safe_load(Config().to_yaml())
    assert {f"train.{key}" for key in tree["train"]} <= set(keys())


@pytest.mark.parametrize("text", ["- a\n- b", "just words", "train: 3", "a: [b"])
def test_a_file_that_is_not_settings_is_refused_in_one_line(text):
    with pytest.raises(InputError, match="file") as error:
        from_yaml(text, "file")
    assert "\n" not in str(error.value)


def test_a_number_of_clusters_or_a_range_to_choose_from():
    assert parse_clusters("10") == {"clusters": 10, "suggest.range": None}
    assert parse_clusters(" 5..40 ") == {"clusters": None, "suggest.range": (5, 40)}
    assert parse_clusters("7..7") == {"clusters": None, "suggest.range": (7, 7)}


@pytest.mark.parametrize("text", ["", "abc", "5...40", "5..", "..40", "5-40", "2.5", "٣", "5..40..60"])
def test_what_is_neither_gets_an_example_of_both(text):
    with pytest.raises(InputError, match="write a number, as in -k 10, or a range to choose from, as in"):
        parse_clusters(text)
