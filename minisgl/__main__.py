"""`python -m minisgl`."""

import sys

from minisgl.cli import main

if __name__ == "__main__":
    sys.exit(main())
