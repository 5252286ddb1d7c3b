"""`python -m calibrate.validation FILE [--profile P] [--stack S] [--json OUT]`."""

from __future__ import annotations

import argparse
import json
import sys

from calibrate.validation.run import to_json, validate_rows
from calibrate.validation.table import render
from simulator.errors import TraincastError
from simulator.files import write_atomic


def main() -> int:
    """Write the table to standard output; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m calibrate.validation")
    parser.add_argument("file", help="CSV file of measured steps, collectives or kernels")
    parser.add_argument("--profile", help="machine for all rows: a shipped name or a .toml file")
    parser.add_argument("--stack", help="stack for all rows: a shipped name or a .toml file")
    parser.add_argument("--json", metavar="OUT", help="also write every row to this file")
    arguments = parser.parse_args()
    try:
        validation = validate_rows(arguments.file, arguments.profile, arguments.stack)
        if arguments.json:
            text = json.dumps(to_json(validation), allow_nan=False, indent=1)
            write_atomic(arguments.json, text + "\n")
    except TraincastError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(render(validation) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
