"""Selective prediction over records: one parser, one abstention policy, one corpus check, one release gate."""

from __future__ import annotations

from geoeval.selection.corpus import check_corpus, read_records
from geoeval.selection.policy import ABSTENTIONS, Abstention, AbstentionPolicy, abstention
from geoeval.selection.prefill import PrefillDecision, evaluate_prefill_gate
from geoeval.selection.record import Record, Suggestion, parse_record, parse_suggestion
from geoeval.selection.settings import RecordShape, SplitLimits

__all__ = [
    "ABSTENTIONS",
    "Abstention",
    "AbstentionPolicy",
    "PrefillDecision",
    "Record",
    "RecordShape",
    "SplitLimits",
    "Suggestion",
    "abstention",
    "check_corpus",
    "evaluate_prefill_gate",
    "parse_record",
    "parse_suggestion",
    "read_records",
]
