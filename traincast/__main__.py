"""`python -m traincast`."""

import sys

from traincast.cli import main

if __name__ == "__main__":
    sys.exit(main())
