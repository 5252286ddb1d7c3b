"""Who may ask the page: its own origin on its own host, with bodies of bounded size."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from flask import Flask, Response

MAX_BODY_BYTES = 2 * 2**20
"""Of a request: a scenario's text twice, in base64, with all fields."""
_REFUSED = 403
_FIXED_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def is_loopback(host: str) -> bool:
    """Return whether a host to listen on is reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def host_problem(header: str, bound: str, port: int) -> str:
    """Return why a Host header is refused; nothing where it is this server's.

    A name that a stranger's DNS points here (DNS rebinding) is neither a number nor ours.

    >>> host_problem("localhost:8050", "127.0.0.1", 8050)
    ''
    >>> host_problem("evil.example:8050", "127.0.0.1", 8050)
    'evil.example is not a name of this server'
    """
    try:
        parts = urlsplit(f"//{header}")
        name, found = parts.hostname or "", parts.port
    except ValueError:
        return "the Host header is no host"
    if found != port:
        return f"this server is at port {port}"
    if name in ("localhost", bound.lower()):
        return ""
    try:
        number = ip_address(name)
    except ValueError:
        return f"{name} is not a name of this server"
    if is_loopback(bound) and not number.is_loopback:
        return f"{name} is not an address of this server"
    return ""


def origin_problem(origin: str | None, host: str) -> str:
    """Return why a request that asks for work is refused; nothing where its page is ours.

    >>> origin_problem("http://127.0.0.1:8050", "127.0.0.1:8050")
    ''
    >>> origin_problem("https://evil.example", "127.0.0.1:8050")
    'the page that asks is of another origin'
    """
    return "" if origin == f"http://{host}" else "the page that asks is of another origin"


def guard(server: Flask, bound: str, port: int, scripts: list[str]) -> None:
    """Make a Flask server refuse strangers; `scripts` are the sources of inline scripts."""
    from flask import Response, request

    server.config["MAX_CONTENT_LENGTH"] = MAX_BODY_BYTES
    policy = "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' {' '.join(scripts)}",
            "style-src 'self' 'unsafe-inline'",  # plotly and Dash set styles as they draw
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        )
    )

    @server.before_request
    def refuse() -> Response | None:
        host = request.headers.get("Host", "")
        problem = host_problem(host, bound, port)
        if not problem and request.method not in ("GET", "HEAD"):
            problem = origin_problem(request.headers.get("Origin"), host)
        return Response(f"{problem}\n", _REFUSED, mimetype="text/plain") if problem else None

    @server.after_request
    def harden(response: Response) -> Response:
        response.headers.update(_FIXED_HEADERS)
        response.headers["Content-Security-Policy"] = policy
        return response
