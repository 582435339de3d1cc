"""Gates as text: reading one from the command line, and refusing one on a metric that does not exist."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from geoeval.errors import ConfigError, nearest_spelling
from geoeval.model import Gate

_EXAMPLE = (
    "a gate reads 'recall>=0.9', 'rmse<=0.5@value', 'recall@car>=0.8' (one class) or 'f1[region]>=0.7' (each subgroup)"
)

_TEXT = re.compile(
    r"^(?P<metric>\w+)(?:@(?P<label>[^<>=@\[\]]+)|\[(?P<field>[^<>=\[\]]+)\])?\s*(?P<sign>[<>]=)\s*"
    r"(?P<limit>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?:\s*(?:@|\s+on\s+)\s*(?P<on>value|interval))?$"
)


def parse_gate(text: str, family: str = "") -> Gate:
    """A gate from the command line.

    Parameters
    ----------
    text
        Metric, ``>=`` or ``<=``, limit; ``@LABEL`` after the metric for one class, ``[FIELD]`` for every subgroup of a
        field, ``@value`` at the end to hold the value instead of the interval.
    family
        Family that the gate belongs to.

    Raises
    ------
    ConfigError
        Where the text is not a gate.

    Examples
    --------
    >>> parse_gate("recall>=0.9").on
    'interval'
    >>> gate = parse_gate("rmse <= 0.5 @value")
    >>> gate.direction, gate.limit, gate.on
    ('at_most', 0.5, 'value')
    >>> parse_gate("recall@car>=0.8").by
    'car'
    """
    found = _TEXT.match(text.strip())
    if found is None:
        raise ConfigError(f"gate {text!r} cannot be read: {_mistake(text)}")
    label, field = found["label"], found["field"]
    return Gate(
        id=text.strip().replace(" ", ""),
        metric=found["metric"],
        direction="at_least" if found["sign"] == ">=" else "at_most",
        limit=float(found["limit"]),
        on="value" if found["on"] == "value" else "interval",
        scope="per_class" if label else "per_subgroup" if field else "overall",
        by=(label or field or "").strip() or None,
        family=family,
    )


def _mistake(text: str) -> str:
    if "%" in text:
        return f"limits are plain numbers, 0.9 and not 90 %; {_EXAMPLE}"
    if not re.search(r"[<>]=", text):
        return f"it needs '>=' or '<=' (limits are inclusive); {_EXAMPLE}"
    return _EXAMPLE


def check_metrics(gates: Iterable[Gate], known: Mapping[str, Collection[str]]) -> None:
    """Refuse a gate on a metric that its family does not have, or on a family that does not exist.

    Parameters
    ----------
    gates
        Gates as declared.
    known
        Metrics of each family. A gate without a family may name a metric of any.

    Raises
    ------
    ConfigError
        Naming the nearest spelling.

    Examples
    --------
    >>> check_metrics([parse_gate("recal>=0.9", "detection")], {"detection": ["recall", "f1"]})
    Traceback (most recent call last):
    geoeval.errors.ConfigError: gate 'recal>=0.9': detection has no metric 'recal'; did you mean 'recall'?
    """
    for gate in gates:
        if gate.family and gate.family not in known:
            raise ConfigError(
                f"gate {gate.id!r}: there is no family {gate.family!r}; {nearest_spelling(gate.family, known)}"
            )
        names = known[gate.family] if gate.family else {name for family in known.values() for name in family}
        if gate.metric not in names:
            owner = gate.family or "no family"
            has = "has no metric" if gate.family else "has a metric"
            raise ConfigError(
                f"gate {gate.id!r}: {owner} {has} {gate.metric!r}; {nearest_spelling(gate.metric, names)}"
            )
