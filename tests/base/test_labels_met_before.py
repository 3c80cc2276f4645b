"""Labels of dictionaries, part after part: what was met is looked up, what no row uses is none."""

import numpy as np
import pyarrow as pa

from bayesfair.base.label_encoder import LabelEncoder


def column(indices, entries):
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pa.array(indices), pa.array(entries))])


def test_parts_whose_dictionaries_differ_are_numbered_as_their_text():
    rng, encoder = np.random.default_rng(1), LabelEncoder("arm")
    texts, numbers = [], []
    for entries in (["b", "gone", "a"], ["a", "b"], ["c", "a", "gone too", "b"], ["a", "c"]):
        used = [i for i, entry in enumerate(entries) if not entry.startswith("gone")]
        at = [None if rng.random() < 0.1 else int(rng.choice(used)) for _ in range(50)]
        texts += [None if i is None else entries[i] for i in at]
        numbers += encoder.encode(column(at, entries)).tolist()
    assert set(encoder.labels) == {"a", "b", "c"}
    assert [None if i < 0 else encoder.labels[i] for i in numbers] == texts
