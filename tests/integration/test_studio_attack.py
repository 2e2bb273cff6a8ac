"""Hostile requests to Studio: none is served, none ends in a traceback, and no file changes."""

import json
import shutil
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import pytest

from helpers.runs import folder_run
from helpers.studio import StudioServer, identity
from propos.review.report import write_report

ACTIONS = ("start", "inspect", "learn", "plan", "export", "predict", "pause", "resume", "delete", "restore")
READING = ("", "studio.js", "api/state", "api/folder", "api/preview?name=digits-1", "run/digits-1/",
           "run/digits-1/data.js", "run/digits-1/original/0", "run/digits-1/api/edits")  # fmt: skip
REFUSED = {400, 403, 404, 405, 413, 414, 422, 431}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    place = tmp_path_factory.mktemp("attacked") / "mine"
    place.mkdir()
    run = folder_run(place)
    write_report(run)
    shutil.move(run.path, place / "runs" / "digits-1")
    (place.parent / "secret").mkdir()
    shutil.copytree(run.config.source, place.parent / "secret" / "photos")
    (place / "way out").symlink_to(place.parent / "secret")
    (place / "runs" / "linked").symlink_to(place.parent / "secret")
    server = StudioServer(place)
    yield server
    server.end(signal.SIGKILL)


def told(server, method, target, headers=None, body=b""):
    """Send a request as it is, byte for byte, and return its status; None if the server hung up."""
    address = f"127.0.0.1:{server.address.port}"
    sent = {"Host": address, **({"Origin": f"http://{address}"} if method != "GET" else {}), **(headers or {})}
    lines = [f"{method} /{target} HTTP/1.1", *(f"{key}: {value}" for key, value in sent.items() if value is not None)]
    if body or method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    with socket.create_connection(("127.0.0.1", server.address.port)) as connection:
        connection.settimeout(60)
        try:
            connection.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1", "replace") + body)
            answer = b""
            while part := connection.recv(65_536):
                answer += part
        except ConnectionError:
            return None
    assert b"Traceback" not in answer
    return int(answer.split()[1]) if answer.startswith(b"HTTP/1.1 ") else None


def files(place):
    """Return all files below a folder, but the server's own notes, with sizes and times."""
    return {str(path): path.lstat().st_mtime_ns for path in sorted(place.parent.rglob("*")) if not path.is_dir()}


def tokens(server):
    wrong = ["", "x" * 32, server.token[:-1], server.token.swapcase(), f"%00{server.token}", f".{server.token}"]
    for token, path in product(wrong, (*READING, "api/../api/state")):
        yield "GET", f"{token}/{path}", {}, b""
    for token, action in product(wrong[:3], ACTIONS):
        yield "POST", f"{token}/api/{action}", {}, b"{}"


def strangers(server):
    token, port = server.token, server.address.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", "", None):
        for path in ("", "api/state", "run/digits-1/"):
            yield "GET", f"{token}/{path}", {"Host": host}, b""
    foreign = ("http://evil.example", "null", f"https://127.0.0.1:{port}", f"http://127.0.0.1:{port + 1}", None)
    for origin, action in product(foreign, ACTIONS):
        yield "POST", f"{token}/api/{action}", {"Origin": origin}, b'{"name": "digits-1"}'
    delete = f"{token}/api/delete"
    twice = (
        {"origin": foreign[0]},
        {"host": "evil.example"},
        {"Sec-Fetch-Site": "same-origin", "sec-fetch-site": "none"},
    )
    for headers in (*twice, {"content-length": "1"}, {"Content-Length": "-1"}):
        yield "POST", delete, headers, b'{"name": "digits-1"}'
    yield "POST", delete, {"Transfer-Encoding": "chunked"}, b"0\r\n\r\n"  # and a length
    yield "GET", f"{token}/api/state", {"Upgrade": "websocket", "Origin": foreign[0]}, b""
    for site in ("cross-site", "same-site"):
        yield "GET", f"{token}/api/state", {"Sec-Fetch-Site": site}, b""
        yield "POST", f"{token}/api/delete", {"Sec-Fetch-Site": site}, b'{"name": "digits-1"}'


def paths(server):
    secret = server.folder.parent / "secret"
    inside = ("run/digits-1", "run/../runs/digits-1/run.json", "run/%2e%2e/%2e%2e/etc/passwd",
              "run/..%2f..%2fetc/passwd", "run/.studio/queue.json", "run/.studio/", "run/linked/", "run/linked/photos",
              "run//etc/passwd", "run/", "run/digits-1/run.json", "run/digits-1/config.yaml",
              "run/digits-1/..%2frun.json", "run/digits-1/../run.json", "run/digits-1/edits.jsonl",
              "run/digits-1/original/-1", "run/digits-1/original/201",
              "run/digits-1/original/..%2f0", "run/digits-1%00/", "run/digits-1%2f..%2fdigits-1/", "run/%ff%fe/",
              f"run/{'a' * 300}/", "run/~root/", "studio.html", "index.html", "docs", "openapi.json", "..",
              "../../etc/passwd", "%2e%2e%2fetc%2fpasswd", "api/result/x", "api/result/..%2fqueue.json",
              "api/result/%00", "api/nothing", "api/preview?name=..", "api/preview?name=/etc", "api/preview",
              "api/preview?name=.studio", "api/picture")  # fmt: skip
    for path in inside:
        yield "GET", f"{server.token}/{path}", {}, b""
    outside = ("/", "/etc", "/etc/passwd", "/proc/self/environ", str(secret), f"{server.folder}/../secret", "~root",
               "~/../..", f"{server.folder}/way%20out", f"{server.folder}/way%20out/photos", "relative", "..", "%00",
               "%0a", "a" * 5000, f"{server.folder}/%00",
               "file:///etc", "\\\\host\\share", f"{server.folder}{'/x' * 2000}")  # fmt: skip
    for path, route in product(outside, ("folder", "picture")):
        yield "GET", f"{server.token}/api/{route}?path={path}", {}, b""
    for path in (f"{server.folder}/runs/digits-1/run.json", f"{server.folder}/photos", f"{server.folder}/nothing.png"):
        yield "GET", f"{server.token}/api/picture?path={path}", {}, b""


def bodies(server):
    """Make bodies that are no requests, or ask for what nobody may have."""
    photos, name = str(server.folder / "photos"), "digits-1"
    broken = (
        b"",
        b"null",
        b"[]",
        b"1",
        b"{",
        b"\xff\xfe",
        b'"start"',
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"{}",
        b"9" * 5_000,
    )
    for body, action in product(broken, ("start", "export")):
        yield "POST", f"{server.token}/api/{action}", {}, body
    good = {"id": identity(), "source": photos}
    secret = str(server.folder.parent / "secret" / "photos")
    wrong = [{"id": "../../x1234"}, {"id": "short"}, {"id": "a" * 65}, {"id": "a b c d e"}, {"id": None}, {"id": ["a"]},
             {"clusters": "-1"}, {"clusters": "10; rm -rf ~"}, {"clusters": "--resume"}, {"clusters": 10},
             {"clusters": "1..2..3"}, {"clusters": "9" * 9}, {"clusters": "１０"}, {"source": "--out"},
             {"source": "-k"},
             {"source": "/etc"}, {"source": secret}, {"source": f"{server.folder}/way out"}, {"source": "photos"},
             {"source": f"{photos}/nothing"}, {"source": "\x00"}, {"source": "digits"}, {"source": ["x"]},
             {"source": "https://evil.example/x.zip"}, {"out": "/tmp/x"}, {"settings": {}}, {"__proto__": {}},
             {"source": "a" * 5000}, {"source": f"{server.folder}/runs/digits-1/run.json"}]  # fmt: skip
    for change in wrong:
        yield "POST", f"{server.token}/api/start", {}, json.dumps({**good, **change}).encode()
    good = {"id": identity(), "name": name, "form": "folders", "output": str(server.folder / "out")}
    wrong = [{"output": "/etc/x"}, {"output": secret}, {"output": "x"}, {"output": f"{server.folder}/way out/x"},
             {"output": f"{photos}/x"}, {"output": f"{server.folder}/runs/digits-1/x"}, {"output": photos},
             {"output": f"{server.folder}/no/x"}, {"output": f"{server.folder}/.."}, {"output": None}, {"output": ""},
             {"output": f"{server.folder}/{'n' * 300}/x"}, {"form": "exe"}, {"form": ["csv"]}, {"how": "move"},
             {"how": "--dry-run"}, {"split": "80;10"}, {"split": "1000/1"}, {"name": ".."}, {"name": ".studio"},
             {"name": "linked"}, {"name": "/etc"}, {"name": ""}, {"name": "a" * 300}, {"name": "x\x00"}]  # fmt: skip
    for change, action in product(wrong, ("plan", "export")):
        yield "POST", f"{server.token}/api/{action}", {}, json.dumps({**good, **change}).encode()
    for action, bad in product(
        ("pause", "resume", "delete", "restore", "learn"), ("", "..", "linked", ".studio", "no", "/")
    ):
        yield "POST", f"{server.token}/api/{action}", {}, json.dumps({"name": bad, "id": identity()}).encode()


def shapes(server):
    """Make requests of odd methods and sizes."""
    token = server.token
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "HEAD"):
        yield method, f"{token}/api/delete", {}, b'{"name": "digits-1"}'
    for action in ACTIONS:
        yield "GET", f"{token}/api/{action}", {}, b""
    yield "POST", f"{token}/api/start", {}, b" " * 100_000
    yield "POST", f"{token}/api/start", {}, json.dumps({"id": identity(), "source": "x" * 70_000}).encode()
    yield "GET", f"{token}/{'a' * 100_000}", {}, b""
    yield "GET", f"{token}/api/state", {"X": "a" * 100_000}, b""
    yield "GET", f"{token}/api/%00%0d%0aSet-Cookie:x", {}, b""


KINDS = {kind.__name__: kind for kind in (tokens, strangers, paths, bodies, shapes)}


def test_there_are_more_than_three_hundred(server):
    assert sum(len(list(kind(server))) for kind in KINDS.values()) >= 300


@pytest.mark.parametrize("kind", KINDS)
def test_no_hostile_request_is_served(server, kind):
    before = files(server.folder)
    for request in KINDS[kind](server):
        status = told(server, *request)
        assert status is None or status in REFUSED, (status, request)
    assert files(server.folder) == before
    assert server.process.complaints() == ""
    assert server.state()["runs"][0]["state"] == "finished"


@pytest.mark.full
def test_two_windows_that_do_the_same_at_once_do_it_once(server):
    asked = [
        ("start", {"id": identity(), "source": str(server.folder / "photos")}),
        ("export", {"id": identity(), "name": "digits-1", "form": "csv"}),
        ("export", {"id": identity(), "name": "digits-1", "form": "folders", "output": f"{server.folder}/o"}),
    ]
    barrier = threading.Barrier(8)

    def at_once(route, body):
        barrier.wait()
        return server.post(route, **body)

    with ThreadPoolExecutor(8) as threads:
        for route, body in asked:
            answers = [each.result() for each in [threads.submit(at_once, route, body) for _ in range(8)]]
            assert {status for status, _ in answers} == {200}
            assert len({json.dumps(said) for _, said in answers}) == 1
        for route in ("pause", "delete"):
            answers = [
                each.result() for each in [threads.submit(at_once, route, {"name": "photos-1"}) for _ in range(8)]
            ]
            assert {status for status, _ in answers} <= {200, 422}
            if route == "pause":
                server.wait("photos-1", "paused")
    assert [run["name"] for run in server.state()["runs"]] == ["digits-1"]
    assert [server.done(body["id"])["state"] for _, body in asked[1:]] == ["done", "done"]
    assert server.process.complaints() == ""
