"""The page's server: one address, until it is interrupted."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Problem
from traincast.serve.app import Served, make_app
from traincast.serve.evaluation import MAP_SECONDS, Question
from traincast.serve.guard import guard
from traincast.serve.worker import Worker

_ESTIMATE_SECONDS = 30.0
"""An estimate takes milliseconds; this is for the start of its process on a busy machine."""
_WAITING = 64
"""Connections that may wait to be accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen; port 0 is any free one."""

    host: str
    port: int


def serve(
    text: str, name: str, folder: Path, address: Address, ready: Callable[[str], None]
) -> None:
    """Serve the page of a scenario's text until Ctrl-C; `ready` is told its address.

    Raises:
        InputError: the address cannot be listened on; where the port is taken a free one is named.
    """
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        """Requests are not worth a line each."""

        def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    host = address.host
    listening = _listen(host, address.port)
    port = listening.getsockname()[1]
    workers = {
        Question.ESTIMATE: Worker(_ESTIMATE_SECONDS),
        Question.MAP: Worker(_ESTIMATE_SECONDS + MAP_SECONDS),
    }
    app = make_app(Served(text=text, name=name, folder=folder, workers=workers))
    guard(app.server, host, port, app.csp_hashes())
    with listening:
        server = make_server(
            host,
            port,
            app.server,
            threaded=True,
            request_handler=Quiet,
            fd=listening.fileno(),
        )
        server.daemon_threads = True
        try:
            shown = f"[{host}]" if ":" in host else host
            ready(f"http://{shown}:{port}/")
            server.serve_forever()
        finally:
            for worker in workers.values():
                worker.stop()


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        raise InputError(_refused(error, host, port)) from error
    return listening


def _refused(error: OSError, host: str, port: int) -> Problem:
    if error.errno == errno.EADDRINUSE:
        with _listen(host, 0) as free:
            other = free.getsockname()[1]
        rule = "is in use by another program"
        return Problem(key="--port", found=str(port), rule=rule, fix=f"--port {other}")
    rule = f"cannot be listened on: {error.strerror or error}"
    return Problem(key="--host", found=f"{host}, port {port}", rule=rule, fix="127.0.0.1")
