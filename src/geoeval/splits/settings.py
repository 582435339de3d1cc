"""What a split is held to: shares, strata, buffer, radius, and which fields may not be shared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from geoeval.errors import ConfigError, nearest_spelling
from geoeval.splits.record import CONTRACT, FIELDS, IDENTITIES, MEMBERS, ROLES

BufferMode = Literal["merge", "quarantine"]

#: Bits within which two perceptual hashes are near-duplicates without further evidence.
LARGEST_RADIUS = 4
#: Bits within which they are where second hashes agree, and bits within which these agree.
CONFIRMED_RADIUS, CONFIRMING_BITS = 8, 12

SHARES: Mapping[str, float] = {
    "train": 0.6,
    "val": 0.1,
    "calibration": 0.1,
    "test": 0.1,
    "background-test": 0.05,
    "challenge": 0.05,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """How samples become splits and what a split must hold to.

    Parameters
    ----------
    shares
        Role to its share of the samples; they add up to 1. Roles with a share must end up with a sample.
    strata
        Declared stratum fields to balance by, beside the task.
    background
        A stratum field and its value that mark background samples; only groups of these go to ``background-test``.
        None lets any sample go there.
    buffer_m
        Least distance between boxes of different splits, geodesic.
    buffer_mode
        ``"merge"`` links what is closer than the buffer; ``"quarantine"`` splits by blocks and sets aside what is then
        too close.
    block_m
        Side of a block in quarantine mode; None means ten buffers.
    radius
        Largest Hamming distance of perceptual hashes that counts as a near-duplicate by itself, at most 4: farther ones
        are too often accidents.
    confirmed_radius
        Largest Hamming distance that counts where a second hash confirms it; ``radius`` turns this off.
    confirming_bits
        Largest Hamming distance of second hashes that confirms.
    labels_in_images
        False compares label sets in the world alone. Labels that cover whole images or stand in regular rows are alike
        in pixels without being copies.
    identities
        Fields that two splits may not share; one that is left out is named in the manifests.
    required
        Fields that every record must say something in, beside its id; all of the contract unless told otherwise. ``()``
        takes whatever is there.
    required_splits
        Roles that must be there; None means those with a share.
    witnesses
        Most offending pairs that are named; counts are exact whatever this is.

    Raises
    ------
    ConfigError
        Naming the setting.
    """

    shares: Mapping[str, float] = field(default_factory=lambda: dict(SHARES))
    strata: tuple[str, ...] = ()
    background: tuple[str, str] | None = None
    buffer_m: float = 2000.0
    buffer_mode: BufferMode = "merge"
    block_m: float | None = None
    radius: int = LARGEST_RADIUS
    confirmed_radius: int = CONFIRMED_RADIUS
    confirming_bits: int = CONFIRMING_BITS
    labels_in_images: bool = True
    identities: tuple[str, ...] = (*IDENTITIES, *MEMBERS)
    required: tuple[str, ...] = CONTRACT
    required_splits: tuple[str, ...] | None = None
    witnesses: int = 100

    def __post_init__(self) -> None:
        for role in (*self.shares, *(self.required_splits or ())):
            if role not in ROLES:
                raise ConfigError(f"shares: unknown role {role!r}; {nearest_spelling(role, ROLES)}")
        total = math.fsum(self.shares.values())
        if not all(0 <= share <= 1 for share in self.shares.values()) or abs(total - 1) > 1e-9:
            raise ConfigError(f"shares: must lie in [0, 1] and add up to 1, got a sum of {total:.12g}")
        if not (math.isfinite(self.buffer_m) and 0 <= self.buffer_m <= 1e6):
            raise ConfigError(f"buffer_m: must be a distance of 0 to 1,000,000 m, got {self.buffer_m!r}")
        if self.block_m is not None and not (math.isfinite(self.block_m) and self.block_m > 0):
            raise ConfigError(f"block_m: must be a length above 0 m, got {self.block_m!r}")
        self._check_radii()
        if self.buffer_mode not in ("merge", "quarantine"):
            raise ConfigError(f"buffer_mode: must be 'merge' or 'quarantine', got {self.buffer_mode!r}")
        if self.witnesses < 1:
            raise ConfigError(f"witnesses: at least one pair must be named, got {self.witnesses!r}")
        for name in self.identities:
            if name not in (*IDENTITIES, *MEMBERS):
                raise ConfigError(
                    f"identities: unknown field {name!r}; {nearest_spelling(name, (*IDENTITIES, *MEMBERS))}"
                )
        for name in self.required:
            if name not in FIELDS:
                raise ConfigError(f"required: unknown field {name!r}; {nearest_spelling(name, FIELDS)}")

    def _check_radii(self) -> None:
        if not 0 <= self.radius <= LARGEST_RADIUS:
            raise ConfigError(
                f"radius: must lie in [0, {LARGEST_RADIUS}] bits of 64, got {self.radius!r}; farther images are too "
                "often alike by accident. Set confirmed_radius, within which a second hash has to agree"
            )
        if not self.radius <= self.confirmed_radius <= 15:
            raise ConfigError(
                f"confirmed_radius: must lie in [radius, 15] = [{self.radius}, 15] bits of 64, "
                f"got {self.confirmed_radius!r}"
            )
        if not 0 <= self.confirming_bits <= 24:
            raise ConfigError(f"confirming_bits: must lie in [0, 24] bits of 64, got {self.confirming_bits!r}")

    @property
    def roles(self) -> tuple[str, ...]:
        """Roles with a share, in their usual order."""
        return tuple(role for role in ROLES if self.shares.get(role, 0) > 0)

    @property
    def demanded(self) -> tuple[str, ...]:
        """Roles that must be there."""
        return self.roles if self.required_splits is None else self.required_splits

    def described(self) -> dict[str, Any]:
        """The settings as plain values, for manifests."""
        return {
            "shares": {role: self.shares[role] for role in self.roles},
            "strata": list(self.strata),
            "background": None if self.background is None else list(self.background),
            "buffer_m": self.buffer_m,
            "buffer_mode": self.buffer_mode,
            "block_m": self.block,
            "radius": self.radius,
            "confirmed_radius": self.confirmed_radius,
            "confirming_bits": self.confirming_bits,
            "labels_in_images": self.labels_in_images,
            "identities": list(self.identities),
            "required": [name for name in FIELDS if name in self.required],
            "required_splits": list(self.demanded),
        }

    @property
    def block(self) -> float | None:
        """Side of a block in metres; None where blocks are not used."""
        if self.buffer_mode == "merge":
            return None
        return self.block_m or max(10 * self.buffer_m, 1.0)


def strictest(declared: Sequence[Mapping[str, Any]], **more: Any) -> SplitSettings:
    """What manifests are held to between them: the widest limits of any, and every identity that one holds apart.

    Parameters
    ----------
    declared
        The ``settings`` of manifests.
    more
        Further settings; by default no field and no split is required.

    Examples
    --------
    >>> one, two = SplitSettings(buffer_m=100.0).described(), SplitSettings(identities=("group_id",)).described()
    >>> held = strictest([one, two])
    >>> held.buffer_m, held.required, len(held.identities)
    (2000.0, (), 8)
    """
    widest: dict[str, Any] = {
        name: max(one[name] for one in declared)
        for name in ("buffer_m", "radius", "confirmed_radius", "confirming_bits")
    }
    widest["labels_in_images"] = any(one["labels_in_images"] for one in declared)
    identities = tuple(dict.fromkeys(name for one in declared for name in one["identities"]))
    return SplitSettings(**{**widest, "identities": identities, "required": (), "required_splits": (), **more})
