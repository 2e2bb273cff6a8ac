"""A method of another package: installed by pip, found by its entry point, trained by the command."""

import os
import subprocess
import sys

import pytest

from helpers.small import save_digits

PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "toy-clustering"
version = "1.0"

[project.entry-points."propos.methods"]
toy = "toy_clustering:Toy"
broken = "toy_clustering:NAME"
"""
METHOD = '''
"""A method outside propos."""

from propos.losses import nt_xent
from propos.methods import Method, MethodSettings
from propos.networks import Mlp

NAME = "toy"


class Toy(Method):
    """Contrast images."""

    class Settings(MethodSettings):
        temperature: float = 0.5

    def __init__(self, settings, setup):
        super().__init__(settings, setup)
        self.online = setup.encoder(lambda width: Mlp(width, setup.network.dimension))

    def losses(self, batch, ctx):
        za, zb = ctx.gather(*ctx.encode(self.online, *batch.views()))
        return {"toy": nt_xent(za, zb, self.settings.temperature)}
'''


def propos(packages, cwd, *words):
    """Run the command where the packages of a folder are installed too."""
    path = os.pathsep.join([str(packages), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "propos", *map(str, words)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.mark.full
def test_a_method_of_an_installed_package_is_trained_by_its_name(tmp_path):
    (tmp_path / "toy" / "toy_clustering").mkdir(parents=True)
    (tmp_path / "toy" / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "toy" / "toy_clustering" / "__init__.py").write_text(METHOD)
    packages = tmp_path / "packages"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    subprocess.run([*pip, "--no-build-isolation", "--target", packages, tmp_path / "toy"], check=True)
    images = save_digits(tmp_path / "digits.npz", 100)
    misspelt = propos(packages, tmp_path, "run", images, "--method", "toy", "--set", "toy.temprature=1")
    assert misspelt.returncode == 2
    assert "unknown key toy.temprature: did you mean toy.temperature?" in misspelt.stderr
    broken = propos(packages, tmp_path, "run", images, "--method", "broken")
    assert broken.returncode == 2
    assert "toy_clustering:NAME is not a subclass of propos.methods.Method" in broken.stderr
    settings = ["--set", "toy.temperature=0.2", "--set", "train.epochs=1", "--no-report"]
    done = propos(packages, tmp_path, "run", images, "--method", "toy", "--out", "run", *settings)
    assert done.returncode == 0, done.stderr
    assert '"toy"' in (tmp_path / "run" / "history.jsonl").read_text()
