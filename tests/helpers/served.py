"""A run's page, served by `propos open` in a process of its own."""

import http.client
import json
import re
import signal
import subprocess
import sys
from urllib.parse import urlsplit

ENDED = 600  # seconds; only a server that hangs is waited for so long


class Served:
    """A server in a process of its own, and what it says to requests."""

    def __init__(self, folder, port=0):
        code = "import sys; from propos.cli import main; main()"
        command = [sys.executable, "-c", code, "open", str(folder), "--no-browser", "--port", str(port)]
        self.folder = folder
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.line = self.process.stdout.readline()
        self.address = urlsplit(re.search(r"http://\S+", self.line)[0])
        self.host = self.address.netloc
        self.token = self.address.path.strip("/")

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
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=ENDED)
        return said
