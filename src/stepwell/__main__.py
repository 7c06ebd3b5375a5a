"""`python -m stepwell`: the command line, for where its script is not on the path. Nothing else."""

import sys

from stepwell.cli import main

if __name__ == "__main__":
    sys.exit(main())
