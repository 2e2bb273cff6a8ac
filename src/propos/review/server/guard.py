"""The guard in front of a server: host, origin and token are checked before a request is handled."""

from __future__ import annotations

import hmac

from fastapi.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MOST_HEADERS = 32_000  # bytes of a request's headers; browsers send about a thousand
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Guard:
    """Middleware that admits only requests to this host, with the token, from its own page."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self.app, self.token = app, token
        self.hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request before it is handled."""
        if scope["type"] != "http":
            return
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MOST_HEADERS:
            await PlainTextResponse("the request's headers are too large\n", 431, headers=HEADERS)(scope, receive, send)
            return
        headers: dict[str, str] = {}
        for name, value in ((name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]):
            headers[name] = f"{headers[name]}, {value}" if name in headers else value  # sent twice, none is believed
        first = scope["path"].removeprefix("/").partition("/")[0]
        reason = self._reason(headers, scope["method"], first)
        if reason is not None:
            await PlainTextResponse(f"{reason}\n", 403, headers=HEADERS)(scope, receive, send)
            return
        inner = {**scope, "root_path": f"/{first}"}  # the base of redirects

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name for name, _ in message["headers"]}
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(each for each in added if each[0] not in there)]
            await send(message)

        await self.app(inner, receive, guarded)

    def _reason(self, headers: dict[str, str], method: str, token: str) -> str | None:
        """Return why a request is refused; None: admitted."""
        host, origin = headers.get("host"), headers.get("origin")
        if host not in self.hosts:
            return "this server accepts requests to 127.0.0.1 only"
        if origin != f"http://{host}" and (origin is not None or method not in ("GET", "HEAD")):
            return "this server accepts requests from its own page only"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "this server accepts requests from its own page only"
        if not hmac.compare_digest(token.encode(), self.token.encode()):
            return "use the address that propos printed: it contains a token"
        return None
