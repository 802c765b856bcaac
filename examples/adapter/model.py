"""A small language model of characters, and adapters for it: pairs of thin matrices that are added to its large ones.

The adapters are those of "LoRA: Low-Rank Adaptation of Large Language Models" (Hu et al., 2021).
"""

from functools import partial
from typing import Any

import jax
import numpy
from jax import numpy as jnp

Arrays = dict[str, Any]
"""Weights by name; those of the first layer are named `0.query`, `0.up` and so on."""
CHARACTERS = 128
CONTEXT, WIDTH, HEADS, LAYERS = 48, 64, 4, 1
MATRICES = {
    "query": (WIDTH, WIDTH),
    "key": (WIDTH, WIDTH),
    "value": (WIDTH, WIDTH),
    "out": (WIDTH, WIDTH),
    "up": (WIDTH, 4 * WIDTH),
    "down": (4 * WIDTH, WIDTH),
}
"""The matrices of a layer, which are what an adapter adapts."""


def base_weights() -> Arrays:
    """Return a model that has learned nothing."""
    source = numpy.random.default_rng(0)
    shapes = {f"{layer}.{name}": shape for layer in range(LAYERS) for name, shape in MATRICES.items()}
    shapes |= {"characters": (CHARACTERS, WIDTH), "places": (CONTEXT, WIDTH), "scores": (WIDTH, CHARACTERS)}
    return {name: source.normal(0, shape[0] ** -0.5, shape).astype(numpy.float32) for name, shape in shapes.items()}


def adapter_weights(rank: int) -> Arrays:
    """Return an adapter that changes nothing yet: the second matrix of each pair is zero."""
    source, found = numpy.random.default_rng(1), {}
    for layer in range(LAYERS):
        for name, (rows, columns) in MATRICES.items():
            thin = source.normal(0, rows**-0.5, (rows, rank)).astype(numpy.float32)
            found |= {f"{layer}.{name}.in": thin, f"{layer}.{name}.out": numpy.zeros((rank, columns), numpy.float32)}
    return found


def merged(base: Arrays, adapter: Arrays) -> Arrays:
    """Return the weights of a model with its adapter, which are as large as the model's."""
    return {
        name: each + adapter[f"{name}.in"] @ adapter[f"{name}.out"] if f"{name}.in" in adapter else each
        for name, each in base.items()
    }


@jax.jit
def loss(weights: Arrays, texts: Any) -> Any:
    """Return the mean loss of each next character (nats); `texts` are rows of `CONTEXT` + 1 codes."""
    inputs, wanted = texts[:, :-1], texts[:, 1:]
    found = weights["characters"][inputs] + weights["places"]
    past = jnp.tril(jnp.ones((CONTEXT, CONTEXT), bool))
    for layer in range(LAYERS):
        of = {name: weights[f"{layer}.{name}"] for name in MATRICES}
        seen = _scaled(found)
        query, key, value = (
            (seen @ of[name]).reshape(*seen.shape[:2], HEADS, WIDTH // HEADS) for name in ("query", "key", "value")
        )
        weight = jnp.einsum("bqhd,bkhd->bhqk", query, key) / (WIDTH // HEADS) ** 0.5
        weight = jax.nn.softmax(jnp.where(past, weight, -jnp.inf))
        found += jnp.einsum("bhqk,bkhd->bqhd", weight, value).reshape(seen.shape) @ of["out"]
        found += jax.nn.gelu(_scaled(found) @ of["up"]) @ of["down"]
    chances = jax.nn.log_softmax(_scaled(found) @ weights["scores"])
    return -jnp.take_along_axis(chances, wanted[..., None], axis=-1).mean()


def _scaled(values: Any) -> Any:
    return values * jax.lax.rsqrt((values**2).mean(-1, keepdims=True) + 1e-6)


@partial(jax.jit, static_argnames="rate")
def step(trained: Arrays, state: dict[str, Arrays], frozen: Arrays, texts: Any, number: int, rate: float) -> Any:
    """Take a step of Adam; return what is trained, the optimizer's state, and the loss before.

    `frozen` is the model whose adapter is trained, or empty where the model itself is.
    """
    before, slopes = jax.value_and_grad(lambda own: loss(merged(frozen, own) if frozen else own, texts))(trained)
    mean = {name: 0.9 * state["mean"][name] + 0.1 * each for name, each in slopes.items()}
    square = {name: 0.99 * state["square"][name] + 0.01 * each**2 for name, each in slopes.items()}
    trained = {
        name: each - rate * (mean[name] / (1 - 0.9**number)) / ((square[name] / (1 - 0.99**number)) ** 0.5 + 1e-8)
        for name, each in trained.items()
    }
    return trained, {"mean": mean, "square": square}, before
