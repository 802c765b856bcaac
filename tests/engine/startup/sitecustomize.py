"""Runs first in each Python process that `pulumi` starts in a test.

The heap of a program or a provider of a few resources is not worth collecting: that is a sixth of its processor time.
An emulator, which they start too, collects its own.
"""

import gc
import sys

if "vertex_emulator" not in sys.orig_argv:
    gc.disable()
