"""`propos open`: the server's doors, and corrections that are on the disk before they are confirmed."""

import asyncio
import base64
import http.client
import json
import shutil
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from helpers.runs import folder_run
from helpers.served import Served
from propos.review.report import write_report
from propos.review.server.serving import free_socket
from propos.runs import Run


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    run = folder_run(tmp_path_factory.mktemp("opened"))
    write_report(run)
    return run.path


@pytest.fixture(scope="module")
def served(made):
    server = Served(made)
    yield server
    server.end()


@pytest.fixture
def own(made, tmp_path):
    """Give a function that serves a copy of the run."""
    servers = []

    def start(**options):
        if not servers:
            shutil.copytree(made, tmp_path / "run")
        servers.append(Served(tmp_path / "run", **options))
        return servers[-1]

    yield start
    for server in servers:
        server.end(signal.SIGKILL)


NAMED = {"id": "a1", "op": "rename", "cluster": 3, "name": "threes"}


def test_the_page_its_data_and_originals_are_served(served):
    status, page = served.ask("")
    assert status == 200
    assert f'data-server="{served.folder}"'.encode() in page  # as it was given, for the commands that it shows
    assert served.ask("app.js")[1].startswith(b"var ProposReport")
    assert served.ask("data.js")[1] == (served.folder / "report" / "data.js").read_bytes()
    run = Run.open(served.folder)
    original = served.folder.parent / "photos" / run.table.images[5]
    assert served.ask("original/5") == (200, original.read_bytes())


@pytest.mark.parametrize("token", ["", "wrong", "x" * 32])
def test_nobody_without_the_token_reads_or_writes(served, token):
    for path in ("", "data.js", "original/0", "api/edits"):
        assert served.ask(path, token=token)[0] == 403
    assert served.ask("api/edits", "POST", b"", token=token)[0] == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", None])
def test_a_foreign_host_is_refused(served, host):
    assert served.ask("", Host=host)[0] in (400, 403)
    assert served.save(NAMED, Host=host)[0] in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", None])
def test_a_foreign_origin_may_not_write(served, origin):
    assert served.save(NAMED, Origin=origin)[0] == 403
    if origin is not None:
        assert served.ask("api/edits", Origin=origin)[0] == 403
    assert not (served.folder / "edits.jsonl").exists()


PATHS = ["../run.json", "..%2frun.json", "%2e%2e/run.json", "report/../../run.json", "run.json", "config.yaml",
         "model.safetensors", "edits.jsonl", "//etc/passwd", "original/-1", "original/201", "original/..%2f0",
         "sheet-0000.png%00", "docs", "openapi.json"]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_nothing_else_can_be_read(served, path):
    assert served.ask(path)[0] in (404, 422)


def test_a_link_out_of_the_run_or_of_its_images_is_not_followed(own, tmp_path):
    server = own()
    secret = tmp_path / "secret.png"
    sheet = server.folder / "report" / "sheet-0000.png"
    shutil.copy(sheet, secret)
    sheet.unlink()
    sheet.symlink_to(secret)
    assert server.ask("sheet-0000.png")[0] == 404
    run = Run.open(server.folder)
    original = Path(run.config.source) / run.table.images[7]
    kept = tmp_path / "kept.png"
    shutil.move(original, kept)
    try:
        original.symlink_to(kept)
        assert server.ask("original/7")[0] == 404
    finally:
        original.unlink()
        shutil.move(kept, original)
    assert server.ask("original/7")[0] == 200


REFUSED = {
    "unknown operation": ({"id": "a", "op": "explode"}, "unknown operation"),
    "unknown cluster": ({"id": "a", "op": "rename", "cluster": 99, "name": "x"}, "unknown cluster 99"),
    "unknown edit": ({"id": "a", "op": "undo", "edit": "zz"}, "unknown edit 'zz'"),
    "unknown key": ({"id": "a", "op": "junk", "cluster": 1, "path": "/etc"}, "unknown key path"),
    "newer version": ({"v": 2, "id": "a", "op": "junk", "cluster": 1}, "newer propos"),
    "another run's images": ({"id": "a", "op": "junk", "images": ["no.png"]}, "none of its images"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_edits_that_are_not_understood_are_refused_whole(served, case):
    edit, reason = REFUSED[case]
    status, said = served.save(NAMED, edit)
    assert status == 422
    assert reason in said.decode()
    assert said.count(b"\n") == 1
    assert not (served.folder / "edits.jsonl").exists()


def test_a_hundred_megabytes_are_refused(served):
    connection = socket.create_connection(("127.0.0.1", served.address.port))
    head = f"POST /{served.token}/api/edits HTTP/1.1\r\nHost: {served.host}\r\nOrigin: http://{served.host}\r\n"
    connection.sendall(f"{head}Content-Length: 100000000\r\n\r\n".encode())
    try:
        for _ in range(100):
            connection.sendall(b" " * 1_000_000)
    except OSError:
        pass  # it need not listen to the end
    else:
        assert b" 413 " in connection.recv(100)
    connection.close()
    assert served.ask("api/edits")[0] == 200
    assert not (served.folder / "edits.jsonl").exists()


def test_two_windows_lose_nothing(own):
    server = own()
    first = json.loads(server.save(NAMED)[1])
    assert (first["since"], first["version"]) == (0, 1)
    second = json.loads(server.save({"id": "b1", "op": "junk", "cluster": 2})[1])
    assert [edit["id"] for edit in second["edits"]] == ["a1", "b1"]
    news = json.loads(server.ask("api/edits?since=1&last=a1")[1])
    assert ([edit["id"] for edit in news["edits"]], news["version"]) == (["b1"], 2)
    assert json.loads(server.ask("api/edits?since=2&last=another")[1])["since"] == 0
    assert second["edits"][1] == {"v": 1, "id": "b1", "op": "junk", "cluster": 2}  # as the log has it
    again = json.loads(server.save(NAMED, since=2, last="b1")[1])
    assert (again["edits"], again["version"]) == ([], 2)


def test_two_splits_with_the_same_id_give_two_clusters(own):
    server = own()
    run = Run.open(server.folder)
    names, free = run.table.images, run.edits.free_id()
    for number in (1, 2):
        status, said = server.save(
            {"id": f"s{number}", "op": "split", "images": [names[number]], "into": free},
            {"id": f"r{number}", "op": "rename", "cluster": free, "name": f"of {number}"},
        )
        assert status == 200, said
    again = {"id": "s2", "op": "split", "images": [names[2]], "into": free}  # whose answer was lost on its way
    assert json.loads(server.save(again, since=4, last="r2")[1])["edits"] == []
    corrected = Run.open(server.folder).corrected
    assert [corrected.names()[number] for number in (free, free + 1)] == ["of 1", "of 2"]
    assert corrected.table.cluster[[1, 2]].tolist() == [free, free + 1]


def test_what_to_ask_next_follows_what_was_answered(own):
    server = own()
    names = Run.open(server.folder).table.images
    first = json.loads(server.ask("api/questions")[1])
    assert len({image for image, _ in first}) == 100
    answered = [names[image] for image, _ in first]
    assert server.save({"id": "a1", "op": "confirm", "images": answered})[0] == 200
    (server.folder / "run.json").rename(server.folder / "away.json")  # the run is not opened again for them
    then = json.loads(server.ask("api/questions")[1])
    (server.folder / "away.json").rename(server.folder / "run.json")
    assert len(then) == 100
    assert not {image for image, _ in first} & {image for image, _ in then}
    assert server.ask("api/questions", token="wrong")[0] == 403


def test_a_busy_port_is_passed_over_and_ctrl_c_ends_with_one_line(own):
    first = own()
    second = own(port=first.address.port)
    assert second.address.port > first.address.port
    assert first.end(signal.SIGTERM) == "Closed; nothing was corrected\n"
    second.save(NAMED)
    saved = f"{second.folder / 'edits.jsonl'} holds 1 edit, seen in {second.folder / 'report' / 'index.html'}"
    assert second.end().splitlines() == [f"Closed; {saved}"]
    assert second.process.returncode == 0


def test_an_address_without_its_last_slash_or_with_one_too_many_leads_to_the_right_one(served):
    base = f"http://{served.host}/{served.token}"
    for given, meant in (("", "/"), ("/data.js/", "/data.js"), ("?a=b", "/?a=b")):
        connection = http.client.HTTPConnection("127.0.0.1", served.address.port)
        connection.request("GET", f"/{served.token}{given}", headers={"Host": served.host})
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("Location")) == (307, base + meant)
        connection.close()


def test_answers_are_sent_at_once():
    """Else the kernel would hold each back for some 40 ms."""

    async def accepted():
        taken = asyncio.get_running_loop().create_future()
        server = await asyncio.start_server(lambda _, writer: taken.set_result(writer), sock=free_socket(0))
        async with server:
            _, ours = await asyncio.open_connection(*server.sockets[0].getsockname())
            theirs = await taken
            at_once = theirs.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for writer in (ours, theirs):
                writer.close()
                await writer.wait_closed()
        return at_once

    with ThreadPoolExecutor(1) as thread:  # this one may have a loop already: a browser's
        assert thread.submit(lambda: asyncio.run(accepted())).result()


def test_a_server_killed_in_a_burst_loses_no_edit_that_it_confirmed(own):
    server, confirmed = own(), []
    names = Run.open(server.folder).table.images
    connection = http.client.HTTPConnection("127.0.0.1", server.address.port)
    for number in range(200):
        edit = {"v": 1, "id": f"e{number}", "op": "move", "images": [names[number]], "into": number % 10}
        try:
            connection.request("POST", f"/{server.token}/api/edits?since={len(confirmed)}&last=e{number - 1}",
                               json.dumps(edit), {"Origin": f"http://{server.host}"})  # fmt: skip
            if number == 150:
                server.process.kill()  # while it is about to answer
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            break
        assert answer.status == 200
        confirmed.append(edit["id"])
    assert len(confirmed) >= 150
    kept = [edit.id for edit in Run.open(server.folder).edits.edits]
    assert kept[: len(confirmed)] == confirmed


def similar(served, **query):
    status, content = served.ask("api/similar", "POST", json.dumps(query).encode())
    return status, json.loads(content) if status == 200 else content.decode()


def test_similar_images_are_ranked_by_cosine_then_by_answers(served):
    vectors = Run.open(served.folder).embeddings
    status, found = similar(served, yes=[5], count=4)
    assert (status, found) == (200, {"rows": np.argsort(-(vectors @ vectors[5]))[:4].tolist(), "probabilities": None})
    left_out = found["rows"][1]
    bits = np.zeros(len(vectors), np.uint8)
    bits[[5, left_out]] = 1
    skip = base64.b64encode(np.packbits(bits, bitorder="little").tobytes()).decode()
    assert similar(served, yes=[5], count=2, skip=skip)[1]["rows"] == found["rows"][2:]
    _, ranked = similar(served, yes=found["rows"], no=[60, 61], count=len(vectors))
    place = {row: at for at, row in enumerate(ranked["rows"])}
    chances = ranked["probabilities"]
    assert chances == sorted(chances, reverse=True)
    assert all(chances[place[row]] > 0.5 for row in found["rows"])
    assert all(chances[place[row]] < 0.5 for row in (60, 61))


@pytest.mark.parametrize(
    "query",
    [
        {"count": 3},
        {"yes": [], "count": 3},
        {"yes": [-1], "count": 3},
        {"yes": [10**9], "count": 3},
        {"yes": [1], "count": 10**9},
        {"yes": [1] * 3_000, "count": 3},
        {"yes": [1], "count": 3, "skip": "#"},
        {"yes": [1], "count": 3, "path": "/etc/passwd"},
    ],
)
def test_a_search_out_of_bounds_is_refused_in_a_line(served, query):
    status, words = similar(served, **query)
    assert status == 422
    assert words.startswith("similar: ")
    assert words.count("\n") == 1
