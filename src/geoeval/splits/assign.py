"""Components to splits: whole, deterministic, by task and declared strata, near the declared shares.

Large components go first, each to where the squared misses, relative to what is wanted, grow least; then single
components move while that helps. Equal choices fall by a hash of the contents, never by the order of a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from geoeval.model import FloatArray, IntArray
from geoeval.splits.components import Components
from geoeval.splits.record import PROTECTED
from geoeval.splits.settings import SplitSettings
from geoeval.splits.table import SampleTable, coded

#: A cell may miss its share by this many samples without being listed: whole samples cannot be cut.
_WHOLE = 1.0

#: Rounds in which components may move after the first filling.
_PASSES = 10


@dataclass(frozen=True, slots=True)
class Balance:
    """How many samples of one stratum a split should hold, and holds."""

    split: str
    stratum: tuple[tuple[str, str], ...]
    wanted: float
    got: int

    @property
    def off(self) -> bool:
        """True where the difference is a whole sample or more."""
        return abs(self.got - self.wanted) >= _WHOLE


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Split of each sample, and how near the shares are.

    Parameters
    ----------
    split
        (n,) names of roles.
    balance
        Wanted and got, a row for each split and stratum.
    pinned
        How many samples declared their split.
    empty
        Roles with a share that got no sample, because there are too few components.
    """

    split: tuple[str, ...]
    balance: tuple[Balance, ...]
    pinned: int
    empty: tuple[str, ...]


def assign(table: SampleTable, found: Components, settings: SplitSettings, seed: str) -> Assignment:
    """Give each component to one split.

    Parameters
    ----------
    seed
        The hash of the source: another source falls another way, the same one always the same.

    Notes
    -----
    A sample that declares a split keeps it, and its component follows. Where one component declares several splits,
    each sample keeps its own and the gates say so.

    Examples
    --------
    >>> from geoeval.splits.components import components
    >>> settings = SplitSettings(shares={"train": 0.5, "test": 0.5})
    >>> table = SampleTable.of(4, sample_id=list("abcd"), task="t", group_id=["g", "g", "h", "h"])
    >>> sorted(assign(table, components(table, settings), settings, "0").split)
    ['test', 'test', 'train', 'train']
    """
    from geoeval.splits._assign_kernels import fill

    roles = settings.roles
    cell, cells = strata_cells(table, settings.strata)
    rank = content_order(table, found, seed)
    wanted, background = wanted_samples(table, cell, len(cells), settings)
    declared = table.texts["split"].to_pylist() if "split" in table.texts else [None] * table.n
    pin = _pins(declared, found, roles)
    allowed = _allowed(found, background, settings)
    order = np.lexsort((rank, -found.sizes, pin < 0)).astype(np.int64)
    chosen = fill(order, *_component_cells(found, cell, len(cells)), wanted, pin, allowed, _PASSES)
    _feed_empty(chosen, found.sizes, rank, pin, allowed, roles)
    split = tuple(
        own if own is not None else roles[chosen[label]] for own, label in zip(declared, found.label, strict=True)
    )
    return Assignment(
        split,
        balance_of(split, cell, cells, wanted, roles),
        sum(own is not None for own in declared),
        tuple(role for role in roles if role not in set(split)),
    )


def strata_cells(table: SampleTable, fields: Sequence[str]) -> tuple[IntArray, list[tuple[tuple[str, str], ...]]]:
    """(n,) stratum of each sample, and what each stratum is: task first, then the declared fields."""
    names = ("task", *fields)
    columns = [table.texts.get("task"), *(table.strata.get(name) for name in fields)]
    parts = []
    for column in columns:
        if column is None:
            parts.append((np.zeros(table.n, dtype=np.int64), ["unknown"]))
            continue
        codes, words = coded(column)
        parts.append((np.where(codes < 0, len(words), codes), [*words, "unknown"]))
    keys = np.stack([codes for codes, _ in parts], axis=1)
    unique, inverse = np.unique(keys, axis=0, return_inverse=True)
    said = [
        tuple((name, parts[i][1][code]) for i, (name, code) in enumerate(zip(names, row, strict=True)))
        for row in unique.tolist()
    ]
    order = sorted(range(len(said)), key=said.__getitem__)
    place = np.empty(len(said), dtype=np.int64)
    place[order] = np.arange(len(said))
    return place[inverse.reshape(-1)], [said[at] for at in order]


def content_order(table: SampleTable, found: Components, seed: str) -> IntArray:
    """(components,) rank of each component by a hash of the seed and its least record."""
    names = table.texts.get("record_sha256")
    texts = (names if names is not None else table.texts["sample_id"]).to_pylist()
    least: list[str] = [""] * len(found.sizes)
    for text, label in zip(texts, found.label.tolist(), strict=True):
        key = text or ""
        if not least[label] or key < least[label]:
            least[label] = key
    keys = [hashlib.sha256(f"{seed}|{one}".encode()).digest() for one in least]
    rank = np.empty(len(keys), dtype=np.int64)
    rank[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return rank


def _component_cells(found: Components, cell: IntArray, cells: int) -> tuple[IntArray, IntArray, IntArray]:
    """Where each component's strata begin, which they are, and how many samples each has."""
    key, count = np.unique(found.label * max(cells, 1) + cell, return_counts=True)
    start = np.searchsorted(key // max(cells, 1), np.arange(len(found.sizes) + 1))
    return start.astype(np.int64), key % max(cells, 1), count.astype(np.int64)


def wanted_samples(
    table: SampleTable, cell: IntArray, cells: int, settings: SplitSettings
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """(roles, strata) how many samples each split should hold, and (n,) which samples are background.

    Where background is declared, ``background-test`` wants its whole share from background samples, and the other
    splits share the rest by their shares.
    """
    share = np.array([settings.shares[role] for role in settings.roles])
    total = np.bincount(cell, minlength=cells).astype(np.float64)
    background = np.zeros(table.n, dtype=np.bool_)
    if settings.background is None or "background-test" not in settings.roles:
        return share[:, None] * total, background
    name, value = settings.background
    if name in table.strata:
        codes, words = coded(table.strata[name])
        background = np.array([word == value for word in words] + [False], dtype=np.bool_)[codes]
    own = settings.roles.index("background-test")
    part = np.bincount(cell[background], minlength=cells).astype(np.float64)
    taken = part * min(1.0, share[own] * table.n / max(part.sum(), 1.0))
    others = np.where(np.arange(len(share)) == own, 0.0, share)
    out = others[:, None] / max(others.sum(), 1e-12) * (total - taken)
    out[own] = taken
    return out, background


def _pins(declared: Sequence[str | None], found: Components, roles: Sequence[str]) -> IntArray:
    """(components,) the role that a component's samples declare: the most protected of several, -1 for none."""
    from geoeval.splits.record import ROLES

    place = {role: at for at, role in enumerate(roles)}
    level = {role: at for at, role in enumerate(ROLES)}
    pin = np.full(len(found.sizes), -1, dtype=np.int64)
    for role, label in zip(declared, found.label.tolist(), strict=True):
        if role in place and (pin[label] < 0 or level[role] > level[roles[pin[label]]]):
            pin[label] = place[role]
    return pin


def _allowed(found: Components, background: NDArray[np.bool_], settings: SplitSettings) -> NDArray[np.bool_]:
    """(components, roles) where a component may go: background-test takes background only, where that is declared."""
    allowed = np.ones((len(found.sizes), len(settings.roles)), dtype=np.bool_)
    if settings.background is not None and "background-test" in settings.roles:
        other = np.bincount(found.label, weights=~background, minlength=len(found.sizes)) > 0
        allowed[other, settings.roles.index("background-test")] = False
    return allowed


def _feed_empty(
    chosen: IntArray, sizes: IntArray, rank: IntArray, pin: IntArray, allowed: NDArray[np.bool_], roles: Sequence[str]
) -> None:
    """Give each role that got nothing the smallest free component of the fullest role, protected roles first."""
    for role in sorted(range(len(roles)), key=lambda at: (roles[at] not in PROTECTED, at)):
        if (chosen == role).any():
            continue
        held = np.bincount(chosen, minlength=len(roles))
        free = np.flatnonzero((pin < 0) & allowed[:, role] & (held[chosen] > 1))
        if len(free):
            full = np.bincount(chosen, weights=sizes, minlength=len(roles))
            best = free[np.lexsort((rank[free], sizes[free], -full[chosen[free]]))[0]]
            chosen[best] = role


def balance_of(
    split: Sequence[str],
    cell: IntArray,
    cells: Sequence[tuple[tuple[str, str], ...]],
    wanted: FloatArray,
    roles: Sequence[str],
) -> tuple[Balance, ...]:
    """Wanted and got for every split with a share and every stratum."""
    out = []
    names = np.array(split, dtype=np.object_)
    for at, role in enumerate(roles):
        got = np.bincount(cell[names == role], minlength=len(cells))
        out += [Balance(role, one, round(float(wanted[at, k]), 6), int(got[k])) for k, one in enumerate(cells)]
    return tuple(out)
