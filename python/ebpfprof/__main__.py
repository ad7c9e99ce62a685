"""`python -m ebpfprof` is the program."""

import os
import sys

from ._binary import Error, binary

try:
    program = binary()
    os.execv(program, [program, *sys.argv[1:]])
except (Error, OSError) as error:
    sys.exit(f"ebpfprof: {error}")
