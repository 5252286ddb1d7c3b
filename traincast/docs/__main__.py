"""`python -m traincast.docs`: writes the generated pages, or says which of them drift."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from simulator.errors import EXIT_FAILED, TraincastError
from simulator.files import write_atomic
from traincast.docs.pages import builders

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m traincast.docs", description=__doc__)
    parser.add_argument(
        "what",
        nargs="?",
        choices=["reference", "accuracy", "samples", "published"],
        default="reference",
        help="reference: the pages under docs/reference; accuracy: docs/accuracy.md, from the "
        "validation data; samples: pictures and samples of output; published: forecasts beside "
        "published runs (default: reference)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 if a reference page, or of samples a sample of output, drifts",
    )
    chosen = parser.parse_args(arguments)
    try:
        return _run(chosen.what, check=chosen.check)
    except TraincastError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code


def _run(what: str, *, check: bool) -> int:
    if what == "accuracy":
        from traincast.docs.accuracy import write_accuracy

        write_accuracy(DOCS)
        return 0
    if what == "samples":
        from traincast.docs.samples import drifted_samples, write_samples

        if check:
            return _say_drifted(drifted_samples(DOCS), "python -m traincast.docs samples")
        write_samples(DOCS)
        return 0
    if what == "published":
        from traincast.docs.published import write_published

        write_published(DOCS)
        return 0
    return check_pages(DOCS / "reference") if check else write_pages(DOCS / "reference")


def write_pages(folder: Path) -> int:
    """Write every page that is not as it should be, and remove those that nothing generates."""
    for path, text in drifted(folder).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, text)
        sys.stdout.write(f"wrote {path}\n")
    for path in _left_over(folder):
        path.unlink()
        sys.stdout.write(f"removed {path}\n")
    return 0


def check_pages(folder: Path) -> int:
    """Say which pages drift and return 1 if any does."""
    return _say_drifted([*drifted(folder), *_left_over(folder)], "make docs")


def _say_drifted(wrong: Sequence[Path], command: str) -> int:
    for path in wrong:
        sys.stderr.write(f"{path} is not what the code says; run `{command}`\n")
    return EXIT_FAILED if wrong else 0


def drifted(folder: Path) -> dict[Path, str]:
    """Return the files that are missing or differ from what is generated, with their text."""
    built = {folder / name: build() for name, build in builders().items()}
    return {
        path: text
        for path, text in built.items()
        if not path.is_file() or path.read_text("utf-8") != text
    }


def _left_over(folder: Path) -> list[Path]:
    """Return generated files that nothing generates any more."""
    known = {folder / name for name in builders()}
    present = [*folder.glob("*.md"), *folder.glob("schema/*.json")]
    return sorted(path for path in present if path not in known and path.name != "README.md")


if __name__ == "__main__":
    sys.exit(main())
