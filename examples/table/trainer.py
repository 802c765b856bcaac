"""Train boosted trees (XGBoost) on a table, and report to the search how well they rank rows that they have not seen.

The table is made here: replace `table()` by what reads yours, such as a file below `/gcs/your-bucket`.
"""

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

COLUMNS = ["age", "months", "calls", "bill", "region", "contract"]
ROWS, HELD_OUT = 4000, 1000


def number(low: float, high: float, *, whole: bool = False) -> Any:
    """Return a type of flags: a number in a range; of whole numbers also `4.0`, as Vertex writes a DISCRETE value."""

    def read(text: str) -> float:
        value = float(text)
        if not low <= value <= high or (whole and not value.is_integer()):
            kind = "a whole number" if whole else "a number"
            raise argparse.ArgumentTypeError(f"{text} is not {kind} from {low} to {high}")
        return int(value) if whole else value

    return read


def folder(location: str) -> Path:
    """Return the folder of a path or of a Cloud Storage URI: Vertex mounts `gs://bucket/x` at `/gcs/bucket/x`."""
    return Path(re.sub("^gs://", "/gcs/", location))


def flag_parser() -> argparse.ArgumentParser:
    """Return the parser of the trainer's flags; their names are the `parameterId`s of the search."""
    parser = argparse.ArgumentParser(description=__doc__, usage=argparse.SUPPRESS, allow_abbrev=False)
    parser.add_argument("--rounds", type=number(1, 1000, whole=True), default=60, help="trees")
    parser.add_argument("--max-depth", type=number(1, 12, whole=True), default=4, help="depth of a tree")
    parser.add_argument("--eta", type=number(0.001, 1), default=0.1, help="share of each tree that counts")
    parser.add_argument("--subsample", type=number(0.1, 1), default=1.0, help="share of the rows that a tree sees")
    parser.add_argument(
        "--model-dir",
        type=folder,
        default=os.environ.get("AIP_MODEL_DIR", "model"),
        help="where to save the model, a folder or a gs:// URI; AIP_MODEL_DIR changes the default",
    )
    return parser


def table() -> tuple[Any, Any]:
    """Return rows of `COLUMNS` and who of them has left: mostly new customers with high bills and no contract."""
    from numpy.random import default_rng

    source = default_rng(0)
    rows = source.uniform(size=(ROWS, len(COLUMNS)))
    _, months, calls, bill, _, contract = rows.T
    chance = 0.05 + 0.7 * (contract < 0.6) * (months < 0.4) * (bill > 0.3) + 0.2 * (calls > 0.8)
    return rows, source.uniform(size=ROWS) < chance


def train(flags: argparse.Namespace) -> None:
    """Train, report `auc` after every tenth tree and the last, and save model.bst and metrics.json."""
    # Imported here, they keep no one waiting for the word on a bad flag.
    import xgboost
    from hypertune import HyperTune

    rows, left = table()
    known = xgboost.DMatrix(rows[HELD_OUT:], left[HELD_OUT:], feature_names=COLUMNS)
    held_out = xgboost.DMatrix(rows[:HELD_OUT], left[:HELD_OUT], feature_names=COLUMNS)
    tuning = HyperTune()

    settings = {"objective": "binary:logistic", "eval_metric": ["logloss", "auc"], "seed": 0}
    settings |= {"max_depth": flags.max_depth, "eta": flags.eta, "subsample": flags.subsample}
    model = xgboost.Booster(settings, [known, held_out])
    metrics: dict[str, Any] = {}
    for trees in range(1, flags.rounds + 1):
        model.update(known, trees - 1)
        if trees % 10 == 0 or trees == flags.rounds:
            found = re.findall(r"eval-(\w+):(\S+)", str(model.eval(held_out)))
            metrics = {name: float(value) for name, value in found}
            print(f"tree {trees}/{flags.rounds} auc {metrics['auc']:.4f} logloss {metrics['logloss']:.4f}")
            tuning.report_hyperparameter_tuning_metric("auc", metrics["auc"], trees)

    flags.model_dir.mkdir(parents=True, exist_ok=True)
    # The name that Google's serving image looks for; save_model would warn that the format is not in the name.
    (flags.model_dir / "model.bst").write_bytes(model.save_raw("ubj"))
    # The score leaves out columns that no tree has used.
    metrics["gain"] = dict.fromkeys(COLUMNS, 0.0) | model.get_score(importance_type="total_gain")
    (flags.model_dir / "metrics.json").write_text(json.dumps(metrics) + "\n")
    print(f"saved model.bst and metrics.json in {flags.model_dir}")


if __name__ == "__main__":
    # In a container this is process 1, which a SIGTERM without a handler does not end.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    train(flag_parser().parse_args())
