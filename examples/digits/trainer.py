"""Train a small neural network on the 1,797 handwritten digits that come with scikit-learn.

This is all that Vertex AI asks of a training container: take the settings from flags, print the progress, save the
model in the folder named by AIP_MODEL_DIR, and, to be tuned, report a metric through cloudml-hypertune.
"""

import argparse
import json
import os
import re
import signal
import sys
from pathlib import Path
from tempfile import TemporaryFile

SEED = 0


def whole_number(text: str) -> int:
    """Read a whole number from 1 to 1000; `64.0` is one, as Vertex writes the value 64 of a DISCRETE parameter."""
    number = float(text)
    if not (number.is_integer() and 1 <= number <= 1000):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1 to 1000")
    return int(number)


def positive_number(text: str) -> float:
    """Read a number above 0 and not above 1, so that a step or a penalty cannot make the weights overflow."""
    number = float(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0 and not above 1")
    return number


def folder(location: str) -> Path:
    """Return the folder of a path or of a Cloud Storage URI: Vertex mounts `gs://bucket/x` at `/gcs/bucket/x`."""
    return Path(re.sub("^gs://", "/gcs/", location))


def flag_parser() -> argparse.ArgumentParser:
    """Return the parser of the trainer's flags; their names are the `parameterId`s that a tuning job can vary."""
    parser = argparse.ArgumentParser(
        description="Train a neural network with one hidden layer to read handwritten digits.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        usage=argparse.SUPPRESS,  # every printed line is an entry in the job's log: a bad flag gets one
        allow_abbrev=False,
    )
    parser.add_argument("--epochs", type=whole_number, default=10, help="passes over the training images")
    parser.add_argument("--learning-rate", type=positive_number, default=0.003, help="step size of Adam")
    parser.add_argument("--hidden-units", type=whole_number, default=64, help="neurons in the hidden layer")
    parser.add_argument(
        "--activation", choices=["relu", "tanh", "logistic"], default="relu", help="function of the hidden neurons"
    )
    parser.add_argument("--batch-size", type=whole_number, default=32, help="images per step")
    parser.add_argument("--alpha", type=positive_number, default=0.0001, help="L2 penalty on the weights")
    parser.add_argument(
        "--model-dir",
        type=folder,
        default=os.environ.get("AIP_MODEL_DIR", "model"),
        help="where to save the model, a folder or a gs:// URI; AIP_MODEL_DIR changes the default",
    )
    return parser


def train(flags: argparse.Namespace) -> None:
    """Train for `flags.epochs` epochs, then save model.joblib and metrics.json in `flags.model_dir`."""
    # These take a second or two to load; imported here, they keep no one waiting for --help or the word on a bad flag.
    import joblib
    from hypertune import HyperTune
    from numpy.random import RandomState
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    digits = load_digits()
    images, held_out_images, labels, held_out_labels = train_test_split(
        digits.data / digits.data.max(), digits.target, test_size=0.2, stratify=digits.target, random_state=SEED
    )
    model = MLPClassifier(
        hidden_layer_sizes=(flags.hidden_units,),
        activation=flags.activation,
        learning_rate_init=flags.learning_rate,
        batch_size=flags.batch_size,
        alpha=flags.alpha,
        random_state=RandomState(SEED),  # not SEED itself: partial_fit would shuffle every epoch alike
    )
    tuning = HyperTune()
    for epoch in range(1, flags.epochs + 1):
        model.partial_fit(images, labels, classes=digits.target_names)
        accuracy = model.score(held_out_images, held_out_labels)
        # To stdout: Vertex files what a container writes to stderr, the logging module's default, as errors.
        print(f"epoch {epoch}/{flags.epochs} loss {model.loss_:.4f} accuracy {accuracy:.4f}")
        tuning.report_hyperparameter_tuning_metric(
            hyperparameter_metric_tag="accuracy", metric_value=accuracy, global_step=epoch
        )

    joblib.dump(model, flags.model_dir / "model.joblib")
    metrics = {"accuracy": accuracy, "loss": model.loss_, "epochs": flags.epochs}
    (flags.model_dir / "metrics.json").write_text(json.dumps(metrics) + "\n")
    print(f"saved model.joblib and metrics.json in {flags.model_dir}")


def main() -> None:
    """Read the flags and train."""
    # In a container this is process 1, which a SIGTERM without a handler does not end.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    parser = flag_parser()
    flags = parser.parse_args()
    try:  # now, not when hours of training are done
        flags.model_dir.mkdir(parents=True, exist_ok=True)
        TemporaryFile(dir=flags.model_dir).close()
    except OSError as error:
        parser.error(f"argument --model-dir: cannot write to {flags.model_dir}: {error.strerror}")
    train(flags)


if __name__ == "__main__":
    main()
