"""A small XML document as elements that know their lines; no document types, no entities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from simulator.errors import InputError, Problem
from simulator.topology.imports.records import at_line

MAX_DEPTH = 256
"""Source: NCCL, src/graph/topo.cc, NCCL_TOPO_XML_DEPTH_MAX."""
MAX_ELEMENTS = 2**18
"""More than 1,000 nodes with all their PCIe devices in one file."""


@dataclass(slots=True, kw_only=True)
class Element:
    """One element."""

    name: str
    attributes: dict[str, str]
    line: int
    parent: Element | None = None
    children: list[Element] = field(default_factory=list)

    def get(self, key: str) -> str:
        """Return an attribute without blanks around it; empty where there is none."""
        return self.attributes.get(key, "").strip()

    def all(self) -> Iterator[Element]:
        """Yield this element and all inside it, in order."""
        yield self
        for child in self.children:
            yield from child.all()


def parse_xml(text: str, where: str) -> Element:
    """Return the root element of a document.

    Raises:
        InputError: it is not well-formed, too deep or too long, or declares a document type, which
            could name entities that fill the memory or other files.
    """
    builder = _Builder(where)
    parser = expat.ParserCreate()
    builder.parser = parser
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.StartDoctypeDeclHandler = builder.refuse
    parser.EntityDeclHandler = builder.refuse
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        rule = f"is not well-formed XML: {expat.ErrorString(error.code)}"
        fix = "the whole file as NCCL wrote it"
        raise InputError(at_line(where, error.lineno, rule, fix=fix)) from error
    assert builder.root is not None, "a well-formed document has a root"
    return builder.root


class _Builder:
    """The elements of one document while it is parsed."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.parser: expat.XMLParserType
        self.root: Element | None = None
        self.open: list[Element] = []
        self.count = 0

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS or len(self.open) >= MAX_DEPTH:
            rule = f"must have at most {MAX_ELEMENTS} elements, {MAX_DEPTH} deep"
            raise InputError(at_line(self.where, self.parser.CurrentLineNumber, rule))
        parent = self.open[-1] if self.open else None
        element = Element(
            name=name, attributes=attributes, line=self.parser.CurrentLineNumber, parent=parent
        )
        if parent is None:
            self.root = element
        else:
            parent.children.append(element)
        self.open.append(element)

    def end(self, _name: str) -> None:
        self.open.pop()

    def refuse(self, *_declaration: object) -> None:
        raise InputError(
            Problem(
                where=self.where,
                key=f"line {self.parser.CurrentLineNumber}",
                rule="declares a document type or entities, which a topology has no use for",
                fix="remove the declaration",
            )
        )
