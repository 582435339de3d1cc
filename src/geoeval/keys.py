"""The names of all metrics, family by family, in print order. A renamed key is a breaking change."""

from __future__ import annotations

from typing import Literal

_OBJECTS = ("tp", "fp", "fn", "precision", "recall", "f1")

_POLYGONS = (
    *_OBJECTS,
    "iou_mean",
    "dice_mean",
    "area_iou",
    "area_dice",
    "boundary_precision",
    "boundary_recall",
    "boundary_f1",
    "centroid_distance_mean",
    "centroid_distance_median",
    "centroid_distance_p95",
    "area_error_mean",
    "area_error_abs_mean",
    "polis_mean",
    "hausdorff_mean",
    "vertex_ratio_mean",
    "sq",
    "rq",
    "pq",
    "valid_reference",
    "valid_prediction",
    "split_references",
    "merged_references",
)

#: Keys of ``estimates`` by family.
KEYS: dict[str, tuple[str, ...]] = {
    "detection": (
        *_OBJECTS,
        "ap50",
        "ap50_95",
        "iou_mean",
        "iou_median",
        "ece",
        "brier",
        "aurc",
        "eaurc",
        "augrc",
    ),
    "footprint": _POLYGONS,
    "vector": (
        *_POLYGONS,
        "completeness",
        "correctness",
        "quality",
        "rms_distance",
        "rmse",
        "ce90",
        "ce95",
        "bias_x",
        "bias_y",
    ),
    "change": (*_OBJECTS, "worst_kind_f1", "date_bias", "date_mae", "date_exact"),
    "raster": (
        "accuracy",
        "mean_iou",
        "mean_iou_reference_classes",
        "macro_f1",
        "kappa",
        "quantity_disagreement",
        "allocation_disagreement",
        "coverage",
        "accuracy_adjusted",
        "balanced_accuracy",
        "mcc",
        "frequency_weighted_iou",
        "macro_f1_all_classes",
        "exchange",
        "shift",
        "accuracy_area_weighted",
    ),
    "elevation": (
        "count",
        "coverage",
        "bias",
        "median",
        "mae",
        "rmse",
        "std",
        "nmad",
        "le68",
        "le90",
        "le95",
        "min",
        "max",
        "skewness",
        "kurtosis",
    ),
    "validation": (
        *_OBJECTS,
        "missed_blocker",
        "missed_critical",
        "unadjudicated",
        "duplicates",
        "misclassified",
        "alarms_per_1000",
    ),
}

#: Keys that stand only under ``per_class``.
CLASS_KEYS: dict[str, tuple[str, ...]] = {
    "vector": ("attribute_agreement",),
    "raster": (
        "precision",
        "recall",
        "f1",
        "iou",
        "support",
        "predicted",
        "precision_adjusted",
        "recall_adjusted",
        "area",
        "area_share",
    ),
}

FAMILIES: tuple[str, ...] = tuple(KEYS)

#: The figures that a release manager reads first.
HEADLINE: dict[str, tuple[str, ...]] = {
    "detection": ("precision", "recall", "f1", "ap50"),
    "footprint": ("precision", "recall", "f1", "area_iou", "boundary_f1"),
    "vector": ("precision", "recall", "f1", "completeness", "correctness", "rmse"),
    "change": ("precision", "recall", "f1", "worst_kind_f1"),
    "raster": ("accuracy", "mean_iou", "macro_f1"),
    "elevation": ("bias", "rmse", "nmad", "le90"),
    "validation": ("precision", "recall", "missed_blocker", "missed_critical"),
}

#: By which figure subgroups are ranked, and whether more of it is better.
RANKED_BY: dict[str, tuple[tuple[str, bool], ...]] = {
    "detection": (("f1", True),),
    "footprint": (("f1", True),),
    "vector": (("f1", True), ("quality", True)),
    "change": (("f1", True),),
    "raster": (("accuracy", True),),
    "elevation": (("rmse", False),),
    "validation": (("recall", True),),
}

#: The figure whose support counts as the support of a subgroup.
SUPPORTED_BY: dict[str, tuple[str, ...]] = {
    "detection": ("recall",),
    "footprint": ("recall",),
    "vector": ("recall", "completeness"),
    "change": ("recall",),
    "raster": ("accuracy",),
    "elevation": ("count",),
    "validation": ("recall",),
}

#: Figures over classes, which one class alone does not have.
OVER_CLASSES = frozenset({"worst_kind_f1"})

#: Figures that carry no interval: counts and extremes, which redraws cannot bound.
WITHOUT_INTERVAL = frozenset(
    {
        "tp",
        "fp",
        "fn",
        "count",
        "min",
        "max",
        "support",
        "predicted",
        "split_references",
        "merged_references",
        "missed_blocker",
        "missed_critical",
        "unadjudicated",
        "duplicates",
        "misclassified",
    }
)

#: Figures that need a stratum field on predictions too; undefined where only references have it.
PREDICTION_SIDE = frozenset(
    {
        "fp",
        "precision",
        "f1",
        "boundary_precision",
        "boundary_f1",
        "correctness",
        "quality",
        "rq",
        "pq",
        "worst_kind_f1",
    }
    | {"ap50", "ap50_95", "ece", "brier", "aurc", "eaurc", "augrc", "valid_prediction", "area_iou", "area_dice"}
)


def known_metrics(family: str) -> frozenset[str]:
    """Every metric name that a gate of this family may use.

    Examples
    --------
    >>> "recall" in known_metrics("detection"), "le90" in known_metrics("detection")
    (True, False)
    """
    return frozenset(KEYS[family]) | frozenset(CLASS_KEYS.get(family, ()))


#: Figures of which more is better (True) or less is better (False); a comparison of two candidates is read by this.
MORE_IS_BETTER: dict[str, bool] = {
    **dict.fromkeys(
        (
            *("tp", "precision", "recall", "f1", "ap50", "ap50_95", "iou_mean", "iou_median", "dice_mean"),
            *("area_iou", "area_dice", "boundary_precision", "boundary_recall", "boundary_f1", "sq", "rq", "pq"),
            *("valid_prediction", "completeness", "correctness", "quality", "worst_kind_f1", "date_exact"),
            *("accuracy", "mean_iou", "mean_iou_reference_classes", "macro_f1", "kappa", "coverage"),
            *("accuracy_adjusted", "balanced_accuracy", "mcc", "frequency_weighted_iou", "macro_f1_all_classes"),
            "accuracy_area_weighted",
        ),
        True,
    ),
    **dict.fromkeys(
        (
            *("fp", "fn", "ece", "brier", "aurc", "eaurc", "augrc", "centroid_distance_mean"),
            *("centroid_distance_median", "centroid_distance_p95", "area_error_abs_mean", "polis_mean"),
            *("hausdorff_mean", "split_references", "merged_references", "rms_distance", "rmse", "ce90", "ce95"),
            *("date_mae", "quantity_disagreement", "allocation_disagreement", "exchange", "shift"),
            *("mae", "std", "nmad", "le68", "le90", "le95", "missed_blocker", "missed_critical"),
            *("unadjudicated", "duplicates", "misclassified", "alarms_per_1000"),
        ),
        False,
    ),
}

#: Signed errors: the nearer to 0, the better.
NEARER_ZERO = frozenset({"area_error_mean", "bias_x", "bias_y", "date_bias", "bias", "median"})


def better(metric: str) -> Literal["more", "less", "nearer_zero"] | None:
    """Which way a figure gets better; None for one that is neither good nor bad (a count of cells, a skewness).

    Examples
    --------
    >>> better("recall"), better("rmse"), better("bias"), better("count")
    ('more', 'less', 'nearer_zero', None)
    """
    if metric in NEARER_ZERO:
        return "nearer_zero"
    more = MORE_IS_BETTER.get(metric)
    return None if more is None else "more" if more else "less"
