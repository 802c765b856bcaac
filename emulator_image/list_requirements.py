"""Print the requirements of the emulator that pyproject.toml lists, without Pulumi's and most of Google's clients'."""

import re
import sys
import tomllib
from pathlib import Path

NOT_IMPORTED = re.compile(r"pulumi|google-(auth|cloud-)|PyYAML")
OF_GRPC = ("google-api-core[grpc]", "proto-plus", "grpc-google-iam-v1")
"""What the paths and messages of google-cloud-aiplatform need, by which gRPC is translated."""

project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
lines = [*project["dependencies"], *project["optional-dependencies"]["emulator"]]
sys.stdout.writelines(f"{line}\n" for line in lines if not NOT_IMPORTED.match(line))
sys.stdout.writelines(f"{line}\n" for line in OF_GRPC)
