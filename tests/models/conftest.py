"""Each PyMC model is compiled once for all tests; only its data containers change."""

import importlib
from collections import Counter

import pytest


@pytest.fixture(scope="session")
def compiled():
    """Return ``(compiled model, data)`` of a shipped model on a history."""
    from bayesfair.inference.compiled import data_of, graph_of
    from bayesfair.inference.nuts import CompiledModel

    stored = {}
    checked = Counter()

    def get(name, history, **options):
        model = importlib.import_module(f"bayesfair.models.{name}").build(history, **options)
        shape = tuple(value.shape for value in data_of(model).values())
        key = (name, shape, repr(sorted(options)), repr(dict(model.coords)))
        if key not in stored:
            stored[key] = CompiledModel(model)
        elif checked[key] < 3:  # that only data differ: a few histories show it as well as all
            assert stored[key].graph.same_as(graph_of(model))
            checked[key] += 1
        return stored[key], data_of(model)

    return get
