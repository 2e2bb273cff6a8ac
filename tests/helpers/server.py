"""A real HTTP server on the loopback, with ranges, that can break off in the middle."""

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Serves files by name; `breaks` says after how many bytes to hang up, one number a request."""

    def __init__(self, files):
        self.files = dict(files)
        self.breaks = []
        self.ranges = True
        self.asked = []  # the Range of each request, None without one

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"


@contextmanager
def serving(files):
    server = Server(files)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked = self.headers.get("Range")
            server.asked.append(asked)
            content = server.files.get(self.path[1:])
            if content is None:
                self.send_error(404)
                return
            start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked and server.ranges else 0
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            self.send_response(206 if asked and server.ranges else 200)
            if asked and server.ranges:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            end = start + server.breaks.pop(0) if server.breaks else len(content)
            self.wfile.write(content[start:end])

        def log_message(self, *_):
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.port = listener.server_address[1]
    thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
