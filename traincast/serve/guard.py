"""Who may ask the page: its own origin on this machine, with bodies of bounded size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flask import Flask, Response

HOST = "127.0.0.1"
"""The only address that is listened on: whoever reaches the page could write to its folder."""
MAX_BODY_BYTES = 2 * 2**20
"""Of a request: a scenario's text with all fields is below 1 MiB."""
_REFUSED = 403
_FIXED_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def guard(server: Flask, port: int, scripts: Sequence[str]) -> None:
    """Make a Flask server refuse strangers; `scripts` are the hashes of its inline scripts."""
    from flask import Response, request

    server.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    policy = page_policy(scripts)

    @server.before_request
    def refuse() -> Response | None:
        problem = request_problem(
            request.method, request.headers.get("Host", ""), request.headers.get("Origin"), port
        )
        return Response(f"{problem}\n", _REFUSED, mimetype="text/plain") if problem else None

    @server.after_request
    def harden(response: Response) -> Response:
        response.headers.update(_FIXED_HEADERS)
        response.headers["Content-Security-Policy"] = policy
        return response


def request_problem(method: str, host: str, origin: str | None, port: int) -> str:
    """Return why a request is refused; nothing where it is the page's own.

    A name that a stranger's DNS points here (DNS rebinding) is none of ours, and a page of another
    origin may not ask for work.

    >>> request_problem("GET", "localhost:8050", None, 8050)
    ''
    >>> request_problem("GET", "evil.example:8050", None, 8050)
    'this server is 127.0.0.1:8050 or localhost:8050'
    >>> request_problem("POST", "127.0.0.1:8050", "https://evil.example", 8050)
    'the page that asks is of another origin'
    """
    own = (f"{HOST}:{port}", f"localhost:{port}")
    if host not in own:
        return f"this server is {' or '.join(own)}"
    if method not in ("GET", "HEAD") and origin != f"http://{host}":
        return "the page that asks is of another origin"
    return ""


def page_policy(scripts: Sequence[str]) -> str:
    """Return the content security policy: nothing from elsewhere, no inline script but these."""
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' {' '.join(scripts)}",
            "style-src 'self' 'unsafe-inline'",  # plotly and Dash set styles as they draw
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
    )
