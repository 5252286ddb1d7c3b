"""The page's server: this machine only, until it is interrupted."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from simulator.errors import InputError, Problem
from traincast.serve.app import Served, make_app
from traincast.serve.evaluation import Question
from traincast.serve.guard import HOST, guard
from traincast.serve.worker import Worker

_WAITING = 64
"""Connections that may wait to be accepted."""


def serve(text: str, name: str, folder: Path, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page of a scenario's text until Ctrl-C; `ready` is told its address.

    Port 0 is any free one.

    Raises:
        InputError: the port cannot be listened on; where it is taken a free one is named.
    """
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        """Requests are not worth a line each."""

        def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002
            """Say nothing."""

    workers = {question: Worker(folder) for question in Question}
    with _listening(port) as listening:
        port = listening.getsockname()[1]
        app = make_app(Served(text=text, name=name, folder=folder, workers=workers))
        guard(app.server, port, app.csp_hashes())
        server = make_server(
            HOST,
            port,
            app.server,
            threaded=True,
            request_handler=Quiet,
            fd=listening.fileno(),
        )
        try:
            for worker in workers.values():
                worker.start()
            ready(f"http://{HOST}:{port}/")
            server.serve_forever()
        finally:
            for worker in workers.values():
                worker.stop()


def _listening(port: int) -> socket.socket:
    """Return a socket that listens; port 0 is any free one."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((HOST, port))
        listening.listen(_WAITING)
    except OSError as error:
        listening.close()
        raise InputError(_port_problem(error, port)) from error
    return listening


def _port_problem(error: OSError, port: int) -> Problem:
    if error.errno != errno.EADDRINUSE:
        rule = f"cannot be listened on: {error.strerror or error}"
        return Problem(key="--port", found=str(port), rule=rule, fix="--port 0: any free one")
    with _listening(0) as free:
        other = free.getsockname()[1]
    rule = "is in use by another program"
    return Problem(key="--port", found=str(port), rule=rule, fix=f"--port {other}")
