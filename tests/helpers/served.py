"""A run's page, served by `propos open` in a process of its own, or in a thread of this one."""

import http.client
import json
import re
import signal
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlsplit

from helpers.command import start
from propos.review.server import serve
from propos.runs import Run


class Served:
    """A server in a process of its own, and what it says to requests."""

    def __init__(self, folder, port=0, **keywords):
        self.folder, self.ended = folder, False
        self.process = start(*self.command(folder), "--no-browser", "--port", port, **keywords)
        while "\n" not in (said := self.process.said()):
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)
        self.line = said
        self.address = urlsplit(re.search(r"http://\S+", said)[0])
        self.host = self.address.netloc
        self.token = self.address.path.strip("/")

    def command(self, folder):
        return "open", folder

    def ask(self, path, method="GET", body=None, token=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.address.port)
        sent = {"Host": self.host, **({"Origin": f"http://{self.host}"} if method == "POST" else {}), **headers}
        sent = {name: value for name, value in sent.items() if value is not None}
        connection.putrequest(method, f"/{self.token if token is None else token}/{path}", skip_host=True)
        if body is not None:
            sent["Content-Length"] = str(len(body))
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, content

    def save(self, *edits, since=0, last="", **headers):
        lines = "".join(f"{json.dumps({'v': 1, **edit})}\n" for edit in edits).encode()
        return self.ask(f"api/edits?since={since}&last={last}", "POST", lines, **headers)

    def end(self, number=signal.SIGINT):
        """End it, if nobody has, and return what it said after its address; `complaint` is its error output."""
        if self.ended:
            return ""
        self.ended = True
        self.process.send_signal(number)
        said, self.complaint = self.process.communicate()
        return said.removeprefix(self.line)


@contextmanager
def serving(folder, arriving=None):
    """Serve a run from a thread, which starts at once, and give the address."""
    ready, given = threading.Event(), []

    def started(address, stop):
        given.extend([address, stop])
        ready.set()

    thread = threading.Thread(target=serve, args=(Run.open(folder), 0, started, None, arriving))
    thread.start()
    ready.wait()
    address, stop = given
    try:
        yield address
    finally:
        stop()
        thread.join()
