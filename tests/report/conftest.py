"""What several files of this folder read."""

import pytest

import bayesfair as bf
from bayesfair import examples


@pytest.fixture(scope="session")
def ecmo():
    return bf.audit(bf.read_history(examples.path("ecmo")), eps1=1, eps2=0.05, seed=1)
