"""The corpus: files of records, read whole or refused whole, and held to their splits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from geoeval.errors import GeoevalError, InputError, LeakageError
from geoeval.evidence.canonical import canonical_bytes, digest
from geoeval.selection.policy import AbstentionPolicy
from geoeval.selection.record import Record, json_object, parse_record
from geoeval.selection.settings import RecordShape, SplitLimits

_SHOWN = 10


def read_records(
    paths: Sequence[Path], shape: RecordShape, policy: AbstentionPolicy | None = None
) -> tuple[Record, ...]:
    """All records of one or many JSON Lines files; one that does not hold refuses them all.

    Parameters
    ----------
    paths
        Files; lines of blanks are skipped.
    shape
        Keys and labels.
    policy
        Says which levels of quality are known.

    Raises
    ------
    InputError
        With file and line of each of the first ten records that do not hold; for a file that cannot be read, holds no
        record, or repeats another.
    """
    out: list[Record] = []
    problems: list[str] = []
    seen: dict[str, str] = {}
    if not paths:
        raise InputError("expected at least one file of predictions, got none")
    names = _names(paths)
    for path, name in zip(paths, names, strict=True):
        content = _content(path, name)
        mark = digest(content)
        if mark in seen:
            raise InputError(f"{name}: holds the same bytes as {seen[mark]}; every prediction would count twice")
        seen[mark] = name
        before = len(out) + len(problems)
        for where, line in _lines(content, name):
            try:
                out.append(parse_record(json_object(line, where), shape, where, policy))
            except InputError as error:
                problems.append(str(error))
        if len(out) + len(problems) == before:
            raise InputError(f"{name}: expected at least one record, found none")
    _refuse(problems, InputError)
    return tuple(out)


def _names(paths: Sequence[Path]) -> list[str]:
    """File names for messages; whole paths where two files have one name."""
    short = [path.name for path in paths]
    return [str(path) if short.count(path.name) > 1 else path.name for path in paths]


def _content(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from error


def _lines(content: bytes, name: str) -> Iterator[tuple[str, bytes]]:
    for number, line in enumerate(content.split(b"\n"), start=1):
        if line.strip():
            yield f"{name}, line {number}", line.strip()


def check_corpus(records: Sequence[Record], limits: SplitLimits) -> None:
    """Refuse a corpus whose splits leak or cannot be derived again, or whose cases contradict each other.

    Parameters
    ----------
    records
        As read.
    limits
        The rule that derives a split from a key.

    Raises
    ------
    LeakageError
        One key, or one cluster, in two splits; a declared split that differs from the derived one.
    InputError
        A case that occurs twice in a model, or that two models were asked differently.

    Examples
    --------
    >>> one = Record("m", "e6" + 14 * "0", "test", 0, None, place="p.jsonl, line 1")
    >>> check_corpus([one], SplitLimits())
    >>> two = Record("m", "e6" + 14 * "0", "train", 0, None, place="p.jsonl, line 2")
    >>> check_corpus([one, two], SplitLimits())
    Traceback (most recent call last):
    geoeval.errors.LeakageError: p.jsonl, line 2: subjectKey e600000000000000 is in train here and in test in p.jsonl,
    line 1; a score on held-out data needs each key in one split
    """
    _refuse(_in_two_splits(records, lambda one: one.subject, "subjectKey", "key"), LeakageError)
    _refuse(_not_derived(records, limits), LeakageError)
    _refuse(_in_two_splits(records, lambda one: one.cluster, "cluster", "cluster"), LeakageError)
    _refuse(_contradictions(records), InputError)


def _in_two_splits(records: Iterable[Record], of: Callable[[Record], str], name: str, word: str) -> Iterator[str]:
    first: dict[str, Record] = {}
    for one in records:
        if not of(one):
            continue
        other = first.setdefault(of(one), one)
        if other.split != one.split:
            yield (
                f"{one.place}: {name} {of(one)} is in {one.split} here and in {other.split} in {other.place}; "
                f"a score on held-out data needs each {word} in one split"
            )


def _not_derived(records: Iterable[Record], limits: SplitLimits) -> Iterator[str]:
    for one in records:
        derived = limits.split_of(one.subject)
        if derived != one.split:
            yield (
                f"{one.place}: split is declared as {one.split!r}, the first byte of subjectKey {one.subject} gives "
                f"{derived!r}; declare what the key gives, or set the limits under [splits]"
            )


def _contradictions(records: Iterable[Record]) -> Iterator[str]:
    answered: dict[tuple[str, str], Record] = {}
    asked: dict[str, Record] = {}
    for one in records:
        if one.id is None:
            continue
        twin = answered.setdefault((one.model, one.id), one)
        if twin is not one:
            yield f"{one.place}: model {one.model!r} has answered the case {one.id!r} in {twin.place} already"
        other = asked.setdefault(one.id, one)
        if (*one.case, one.cluster) != (*other.case, other.cluster):
            yield f"{one.place}: the case {one.id!r} has another subject, truth, quality or cluster in {other.place}"


def _refuse(problems: Iterable[str], kind: type[GeoevalError]) -> None:
    found = list(problems)
    if found:
        more = [f"... and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
        raise kind("\n".join(found[:_SHOWN] + more))


def content_hash(records: Iterable[Record]) -> str:
    """Hash of what the records say, whatever their order and however they are spread over files."""
    return digest(canonical_bytes(sorted(list(one.content) for one in records), digits=None))
