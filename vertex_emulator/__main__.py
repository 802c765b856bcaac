"""`python -m vertex_emulator`, the same as the console script `vertex-emulator`."""

import sys

from vertex_emulator.cli.main import main

sys.exit(main())
