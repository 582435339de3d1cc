"""A set of 250 recorded episodes with five dimensions, and judges that are made of chance."""

from __future__ import annotations

import numpy as np
import pytest

from geoeval.judging.entries import Entry, set_of

DIMENSIONS = ("caveat", "number", "place", "source", "unit")
N = 250


@pytest.fixture(scope="session")
def recorded():
    """Entries whose verdicts were drawn once; the episode does not tell them."""
    rng = np.random.Generator(np.random.PCG64(11))
    return set_of(
        Entry(
            f"map-{at:03d}",
            {"answer": f"answer {at}"},
            bool(rng.random() < 0.6),
            {name: bool(rng.random() < 0.6) for name in DIMENSIONS},
        )
        for at in range(N)
    )


@pytest.fixture(scope="session")
def stub(recorded):
    """Make a judge that agrees with the verifier in a share of verdicts, and may reject more in one dimension.

    Slips are shared so that as many are expected to either side: with one rate for passes and failures alike, a judge
    would be biased towards whichever is rarer.
    """
    known = {entry.task_id: entry for entry in recorded.entries}
    columns = [[entry.dimensions[name] for entry in recorded.entries] for name in DIMENSIONS]
    columns.append([entry.outcome for entry in recorded.entries])
    passes = np.array([sum(column) / len(column) for column in columns])

    def build(seed, agrees=0.95, biased=None, rejects=0.0, accepts=0.0):
        rng, other = (np.random.Generator(np.random.PCG64([seed, part])) for part in range(2))

        def judge(episode):
            entry = known[episode.task_id]
            verifier = np.array([*(entry.dimensions[name] for name in DIMENSIONS), entry.outcome])
            slips = rng.random(len(verifier)) < (1 - agrees) / 2 / np.where(verifier, passes, 1 - passes)
            verdicts = {name: bool(entry.dimensions[name] ^ slips[at]) for at, name in enumerate(DIMENSIONS)}
            if biased is not None:
                if verdicts[biased] and other.random() < rejects:
                    verdicts[biased] = False
                elif not verdicts[biased] and other.random() < accepts:
                    verdicts[biased] = True
            return {"outcome": bool(entry.outcome ^ slips[-1]), "dimensions": verdicts}

        return judge

    return build
