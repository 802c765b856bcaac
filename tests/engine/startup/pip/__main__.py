"""`pip`, but for the list of packages that Pulumi asks for with every command: the real pip made that once.

It is a sixth of the processor time of a command on a small stack, and the tests run hundreds.
"""

import os
import sys

if sys.argv[1:] == ["list", "-v", "--format", "json"]:
    with open(os.environ["PACKAGE_LIST"]) as file:  # noqa: PTH123 - pathlib takes 10 ms
        sys.stdout.write(file.read())
else:
    import runpy
    from pathlib import Path

    ours = str(Path(__file__).parents[1])
    sys.path = [folder for folder in sys.path if folder != ours]
    del sys.modules["pip"]
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
