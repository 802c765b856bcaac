"""Examples on an emulator, run as their pages say and as `vertex-training run` runs them."""

import json
import re
import shlex

import yaml
from vertex_training.rehearsal.runner import Ended, Runner, Source, split_assignments
from vertex_training.settings.offline import StackFile

from tests.blocks import ROOT, blocks
from tests.vertex_emulator.running import RunningEmulator


class Example:
    """An example in a stack whose file is as its page shows it, on an emulator to which VERTEX_EMULATOR_DATA leads."""

    def __init__(self, name: str, emulator: RunningEmulator) -> None:
        self.emulator = emulator
        page = f"examples/{name}/README.md"
        self.page = (ROOT / page).read_text()
        (declared,) = [each.text for each in blocks(page) if each.text.startswith("# stacks/Pulumi.local.yaml")]
        stack = yaml.safe_load(declared)["config"]
        config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in stack.items()}
        self._source = Source(StackFile(ROOT, "vertex-training", "local", config, None), {})
        self._runner = Runner(self._source, emulator.data, print)

    def run(self, command: str) -> Ended:
        """Run a job as `vertex-training run` does with these arguments, which are on the page; it may fail.

        Jobs whose results it uses must have run before.
        """
        assert re.search(rf"vertex-training run {re.escape(command)}(?! --)\b", self.page), command
        job, *options = shlex.split(command)
        variables, others = split_assignments([each for each in options if each != "--set"], "")
        assert not others
        settings = self._source.settings(variables)
        return self._runner.run(settings, {each.name: each for each in settings.jobs}[job], follow_log=False)

    def lines(self, ended: Ended, replica: str = "workerpool0-0") -> list[str]:
        """What a replica of a custom job wrote."""
        return self.emulator.lines(ended.job["name"], f'resource.labels.task_name="{replica}"')


def metrics(ended: Ended) -> dict[str, float]:
    """What the metrics file in a job's model folder says."""
    found: dict[str, float] = json.loads((ended.outputs / "model/metrics.json").read_text())
    return found
