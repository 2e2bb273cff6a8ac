"""What the documentation shows runs as it stands, in the order of each page, and its links lead somewhere.

Commands and programs are run on a folder of generated photographs, and only shorter: what trains, trains for an epoch.
The last lines of the test run say how much processor time they took together: two minutes at most are meant.
What cannot run here is marked in one way, a comment before the block, `<!-- not run: WHY -->`, or before it with the
beginnings of the lines that are left out, <!-- not run: `COMMAND`, `COMMAND`: WHY -->.
"""

import json
import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from helpers import forked
from helpers.command import Result, run, start
from helpers.hold import wait_for
from propos.runs import parse_edits

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(DOCS.glob("*.md"))]
NOTEBOOK = sorted((DOCS / "notebook").glob("*.md"))  # old figures: links are followed, nothing is run
IMAGES = 40
BLOCK = re.compile(r"(?:^<!-- not run: ([^\n]+) -->\n)?^```(\w*)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
PROSE = {"text", "math"}  # kinds of blocks that nobody runs
# Pages that speak of a run which they did not make.
HAVE_A_RUN = {"how-to.md", "trust.md"}
SHORTER = [
    ('recipe="digits", random_state', 'recipe="digits", epochs=1, random_state'),
    ("epochs=200", "epochs=1"),
    ("epochs=2, random_state=seed", "epochs=1, random_state=seed"),
    ('align-uniform", epochs=3', 'align-uniform", epochs=1'),
    ('out="runs/named", epochs=1', 'out="runs/named", epochs=1, report=False'),
]


@dataclass
class Block:
    kind: str
    text: str
    why: str | None

    @property
    def skipped(self):
        """Tell whether no line of it is run."""
        return self.why is not None and not self.why.startswith("`")

    def commands(self):
        """Return its commands that are run: words, and the line as it stands."""
        left_out = tuple(re.findall("`(.+?)`", (self.why or "").partition(": ")[0]))
        for line in self.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words and not line.startswith(left_out):
                yield words, line


def blocks_of(page):
    return [Block(kind, text, why or None) for why, kind, text in BLOCK.findall(page.read_text())]


def name_of(page):
    return page.name


TO_RUN = [
    page
    for page in PAGES
    if page.name != "methods.md" and any(block.kind in ("sh", "python", "json") for block in blocks_of(page))
]


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """Make the photographs once, and a finished run of them."""
    folder = tmp_path_factory.mktemp("photographs")
    subprocess.run([sys.executable, ROOT / "examples" / "photos.py", folder / "photos", str(IMAGES)], check=True)
    done = run("run", "photos/", "-k", "4", cwd=folder)
    assert done.code == 0, done.err
    return folder


@pytest.fixture
def workplace(photographs, tmp_path, request, monkeypatch):
    """Return a folder with what pages speak of: photographs, some new ones, labels, corrections."""
    page = request.param
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    if "examples/photos.py" not in page.read_text():
        shutil.copytree(photographs / "photos", tmp_path / "photos")
        shutil.copy(photographs / "truth.csv", tmp_path)
    (tmp_path / "new").mkdir()
    for path in sorted((photographs / "photos").iterdir())[:12]:
        shutil.copy(path, tmp_path / "new" / path.name)
    if page.name in HAVE_A_RUN:
        shutil.copytree(photographs / "runs", tmp_path / "runs")
    edit = {"v": 1, "id": "a1", "op": "rename", "cluster": 3, "name": "cats"}
    (tmp_path / "edits.jsonl").write_text(json.dumps(edit) + "\n")
    if "propos cache clean" in page.read_text():
        # What it deletes, the other pages still want.
        shutil.copytree(os.environ["PROPOS_CACHE"], tmp_path / "caches")
        monkeypatch.setenv("PROPOS_CACHE", str(tmp_path / "caches"))
    return page, tmp_path


@pytest.fixture
def cost(record_property, request):
    """Note the processor time of what the documentation shows; the last lines of the test run add it up."""

    def note(what, seconds):
        record_property("documentation", [request.node.name, what, seconds])

    return note


def test_every_block_says_what_it_is():
    kinds = {block.kind for page in PAGES for block in blocks_of(page)}
    assert kinds <= PROSE | {"sh", "bash", "python", "json", "toml"}
    unread = [page.name for page in PAGES if page.read_text().count("```") != 2 * len(blocks_of(page))]
    assert unread == []


@pytest.mark.parametrize("workplace", TO_RUN, ids=name_of, indirect=True)
def test_what_a_page_shows_runs(workplace, cost):
    page, folder = workplace
    for number, block in enumerate(blocks_of(page)):
        if block.skipped:
            continue
        if block.kind == "sh":
            for words, line in block.commands():
                cost(line, run_line(words, line, folder))
        elif block.kind == "python":
            cost(f"block {number}", run_program(block.text, folder / f"block-{number}.py").processor_seconds)
        elif block.kind == "json":
            edits, torn = parse_edits(block.text.encode(), page.name)
            assert len(edits) == len(block.text.splitlines())
            assert not torn


def run_line(words, line, folder):
    """Run a line, and return the seconds of processor time it took."""
    if words[:2] == ["propos", "open"]:
        return serve_for_a_moment(words, folder)
    if words[0] == "propos" and ">" not in words:
        done = run(*shorter(words)[1:], cwd=folder)
        assert done.code == 0, f"{line}\n{done.err}"
        return done.processor_seconds
    line = line.replace("examples/photos.py photos", f"examples/photos.py photos {IMAGES}")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{line}\n{done.stderr}"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def shorter(words):
    """Return a command that trains for an epoch where it trains at all, and draws no map of a thousand digits."""
    if words[:2] != ["propos", "run"]:
        return words
    if "--time" in words:
        place = words.index("--time")
        return [*words[:place], "--epochs", "1", *words[place + 2 :]]
    trains = {"digits", "sets/four-digits.npz"} & set(words)
    return [*words, "--epochs", "1", "--no-report"] if trains else words


def serve_for_a_moment(words, folder):
    """Start a server, wait until it says its address, and end it as a person does."""
    process = start(*words[1:], cwd=folder, env={**os.environ, "BROWSER": "true"})
    wait_for(lambda: "http://127.0.0.1" in process.said(), process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert "http://127.0.0.1" in out, err
    assert process.returncode in (0, 130), err
    return process.processor_seconds


def run_program(text, path):
    """Run a program in a process of its own."""
    for long, short in SHORTER:
        text = text.replace(long, short)
    path.write_text(text)
    process = forked.Forked(forked.script, str(path), cwd=path.parent)
    out, err = process.communicate()
    assert process.returncode == 0, err
    return Result(process.returncode, out, err, process.processor_seconds)


@pytest.mark.parametrize("place", [0, 1], ids=["one stage", "two stages"])
def test_the_methods_of_the_documentation_are_short_and_train(tmp_path, cost, place):
    block = [block.text for block in blocks_of(DOCS / "methods.md") if block.kind == "python"][place]
    assert len(block.splitlines()) < 60
    # An untrained network's embeddings give 0.4 to 0.5 on digits.
    done = run_program(block, tmp_path / "method.py")
    cost(f"block {place}", done.processor_seconds)
    assert float(done.out.split()[-1]) > 0.55, done.out


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_scripts_for_clusters_are_well_formed(page):
    for block in blocks_of(page):
        if block.kind == "bash":
            assert block.skipped, "say why it is not run"
            done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def anchors(page):
    """Return what a page's headings are linked to by, as GitHub makes it."""
    headings = re.findall(r"^#+ (.+)$", re.sub(BLOCK, "", page.read_text()), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOK, ROOT / "CHANGELOG.md"], ids=str)
def test_links_lead_to_files_and_headings_that_are_there(page):
    wrong = []
    text = re.sub(r"`[^`\n]+`", "", re.sub(BLOCK, "", page.read_text()))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []
