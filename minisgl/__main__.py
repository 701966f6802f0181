"""`python -m minisgl`."""

import sys
import warnings

from minisgl.cli import main

if __name__ == "__main__":
    warnings.formatwarning = lambda message, *_args, **_kwargs: f"minisgl: {message}\n"
    sys.exit(main())
