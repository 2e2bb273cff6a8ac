"""`propos studio`: the queue, runs that outlive the server, the trash, and what it refuses."""

import hashlib
import json
import shutil
import signal
from pathlib import Path
from urllib.parse import quote

import pytest

from helpers.command import command
from helpers.runs import folder_run
from helpers.studio import StudioServer, identity, until
from propos.review.report import write_report
from propos.runs import Run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    run = folder_run(tmp_path_factory.mktemp("studio"))
    write_report(run)
    return run


@pytest.fixture
def place(made, tmp_path):
    """A folder with images, and a finished run of them among the runs."""
    shutil.copytree(made.config.source, tmp_path / "photos")
    run = shutil.copytree(made.path, tmp_path / "runs" / "digits-1")
    config = run / "config.yaml"
    config.write_text(config.read_text().replace(str(made.config.source), str(tmp_path / "photos")))
    return tmp_path


@pytest.fixture
def studio(place):
    servers = []

    def start(*more, **options):
        servers.append(StudioServer(place, *more, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.end(signal.SIGKILL)


def test_it_prints_one_line_lists_the_runs_and_serves_their_pages(studio):
    server = studio()
    (run,) = server.state()["runs"]
    assert (run["name"], run["state"], run["page"], run["reviewed"]) == ("digits-1", "finished", True, 0)
    assert run["images"] == 201
    assert server.ask(f"run/digits-1/{run['picture']}")[0] == 200
    page = server.ask("run/digits-1/")[1].decode()
    assert 'data-studio="../../"' in page
    assert server.ask("run/digits-1/data.js")[0] == 200
    edit = {"v": 1, "id": "a1", "op": "confirm", "cluster": 3}
    body = json.dumps(edit).encode()
    assert server.ask("run/digits-1/api/edits?since=0", "POST", body)[0] == 200
    size = int((Run.open(server.folder / "runs" / "digits-1").corrected.table.cluster == 3).sum())
    assert until(lambda: server.run("digits-1")["reviewed"]) == size
    assert server.line.count("\n") == 1
    assert server.end() == "Closed\n"


def test_a_window_asks_for_news_alone(studio):
    server = studio()
    version = server.ask("api/state")[1]
    assert server.ask("api/state?known=other") == (200, version)
    known = hashlib.sha256(version).hexdigest()[:16]
    assert server.ask(f"api/state?known={known}") == (204, b"")


def test_a_deleted_run_is_in_the_trash_and_comes_back(studio, place):
    server = studio()
    kept = {path.name: path.read_bytes() for path in (place / "runs" / "digits-1").iterdir() if path.is_file()}
    assert server.post("delete", name="digits-1") == (200, None)
    assert server.state()["runs"] == []
    assert server.ask("run/digits-1/")[0] == 404
    (entry,) = server.state()["trash"]
    assert entry["name"] == "digits-1"
    assert server.post("restore", name=entry["entry"]) == (200, {"run": "digits-1"})
    assert server.state()["trash"] == []
    now = {path.name: path.read_bytes() for path in (place / "runs" / "digits-1").iterdir() if path.is_file()}
    assert now == kept
    assert server.ask("run/digits-1/")[0] == 200


def test_a_second_studio_for_the_same_runs_is_refused_in_one_line(studio, place, capsys):
    studio()
    refused = command(capsys, "studio", place, "--runs", place / "runs", "--no-browser", "--port", 0)
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "open for these runs already" in refused.err


def test_a_run_goes_on_without_the_server_and_the_next_one_finds_it(studio, place):
    """A killed server takes down nothing; what waited is started by the next one, and nothing is started twice."""
    first = studio()
    asked = {"id": identity(), "source": str(place / "photos"), "clusters": "10"}
    assert first.post("start", **asked)[1]["run"] == "photos-1"
    assert first.post("start", **asked)[1]["run"] == "photos-1"  # as if the answer was lost
    assert first.post("start", **{**asked, "id": identity()})[1]["run"] == "photos-2"
    first.wait("photos-1", "working")
    assert first.run("photos-2")["state"] == "waiting"
    first.end(signal.SIGKILL)
    second = studio()
    assert second.run("photos-1")["state"] == "working"
    assert second.run("photos-2")["state"] == "waiting"
    until(lambda: (place / "runs" / "photos-1" / "history.jsonl").is_file())
    assert second.get("api/preview?name=photos-1")[0] == 200
    assert second.post("pause", name="photos-1") == (200, None)
    assert second.wait("photos-1", "paused")["state"] == "paused"
    assert json.loads((place / "runs" / "photos-1" / "run.json").read_text())["status"] == "interrupted"
    second.wait("photos-2", "working")
    second.post("resume", name="photos-1")
    assert second.run("photos-1")["state"] == "waiting"
    second.post("pause", name="photos-1")
    second.post("pause", name="photos-2")
    second.wait("photos-2", "paused")
    assert sorted(path.name for path in (place / "runs").iterdir()) == [".studio", "digits-1", "photos-1", "photos-2"]


@pytest.mark.full
def test_the_page_of_a_run_from_elsewhere_is_written(studio, place):
    shutil.rmtree(place / "runs" / "digits-1" / "report")
    server = studio()
    assert server.run("digits-1")["page"] is False
    assert server.ask("run/digits-1/")[0] == 404
    assert server.post("resume", name="digits-1") == (200, None)
    until(lambda: server.run("digits-1")["page"])
    server.wait("digits-1", "finished")
    assert server.ask("run/digits-1/")[0] == 200
    status, refused = server.post("resume", name="digits-1")
    assert (status, refused) == (200, None)  # again, as after a lost answer
    server.wait("digits-1", "finished")


@pytest.mark.full
def test_an_export_is_planned_first_and_written_where_it_is_told(studio, place):
    server = studio()
    asked = {"id": identity(), "name": "digits-1", "form": "folders", "output": str(place / "sorted")}
    status, planned = server.post("plan", **asked)
    assert (status, planned["count"]) == (200, 201)
    assert planned["files"][0][1].startswith(str(place / "sorted"))
    assert not (place / "sorted").exists()
    assert server.post("export", **asked)[0] == 200
    assert server.done(asked["id"])["state"] == "done"
    assert sum(path.is_symlink() for path in (place / "sorted").rglob("*")) == 201
    assert server.post("export", **{**asked, "id": identity()})[0] == 422  # it exists now
    asked = {"id": identity(), "name": "digits-1", "form": "csv"}
    assert server.post("export", **asked)[0] == 200
    assert server.done(asked["id"])["download"]
    assert server.ask(f"api/result/{asked['id']}")[1].count(b"\n") == 202


def test_a_folder_is_shown_with_its_pictures_and_nothing_outside(studio, place):
    server = studio()
    status, found = server.get("api/folder")
    assert status == 200
    assert found["parent"] is None
    assert {each["name"] for each in found["folders"]} == {"photos", "runs"}
    assert len(found["pictures"]) == 8
    picture = Path(found["pictures"][0])
    assert server.ask(f"api/picture?path={quote(str(picture))}") == (200, picture.read_bytes())
    (place / "out").symlink_to("/etc")
    for outside in ("/etc", "/", str(place.parent), str(place / ".." / ".."), str(place / "out"), "runs", "~nobody"):
        assert server.get(f"api/folder?path={quote(outside)}")[0] == 422
        assert server.post("start", id=identity(), source=outside)[0] == 422
    assert server.get("api/picture?path=/etc/passwd")[0] == 422
