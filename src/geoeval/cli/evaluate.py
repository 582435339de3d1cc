"""``geoeval evaluate FAMILY``: two files in, a table or one JSON object out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import click

from geoeval.errors import ConfigError, nearest_spelling
from geoeval.keys import FAMILIES

_OBJECTS = ("detection", "footprint", "vector", "change")

#: Options that mean something for some families only.
_ONLY = {
    "iou": _OBJECTS,
    "assignment": _OBJECTS,
    "score_min": _OBJECTS,
    "class_aware": ("detection", "footprint", "vector"),
    "max_detections": ("detection",),
    "protocol": ("detection",),
    "boundary_tolerance": ("footprint", "vector"),
    "buffer": ("vector",),
    "max_distance": ("detection", "vector"),
    "date_tolerance": ("change",),
    "reference_before": ("change",),
    "prediction_before": ("change",),
    "band": ("raster", "elevation"),
    "reference_band": ("raster", "elevation"),
    "prediction_band": ("raster", "elevation"),
    "nodata": ("raster", "elevation"),
    "reference_nodata": ("raster", "elevation"),
    "prediction_nodata": ("raster", "elevation"),
    "align": ("raster", "elevation"),
    "design": ("raster",),
    "unit": ("elevation",),
    "reference_unit": ("elevation",),
    "prediction_unit": ("elevation",),
    "vertical_datum": ("elevation",),
    "reference_vertical_datum": ("elevation",),
    "prediction_vertical_datum": ("elevation",),
    "survey_rmse": ("elevation",),
    "assume_clean": ("validation",),
    "drop_unmatched_ids": _OBJECTS,
    "aoi": (*_OBJECTS, "elevation", "raster"),
}

_SIDED = ("layer", "where", "crs", "band", "nodata", "unit", "vertical_datum")
_COLUMNS = ("id", "label", "score", "kind", "date", "value", "stratum", "ignore", "unit_column")


F = TypeVar("F", bound=Callable[..., Any])


def _both(name: str, text: str, **more: Any) -> Callable[[F], F]:
    """An option for both sides, and one for each side that goes before it."""

    def add(function: F) -> F:
        option = name.replace("_", "-")
        for side in ("prediction", "reference"):
            function = click.option(f"--{side}-{option}", f"{side}_{name}", help=f"The same, {side} only.", **more)(
                function
            )
        return click.option(f"--{option}", name, help=text, **more)(function)

    return add


@click.command(name="evaluate", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.argument("family", metavar="FAMILY")
@click.option("--reference", required=True, help="Reference: a file, a glob or a folder.")
@click.option("--prediction", required=True, help="Prediction: a file, a glob or a folder; files pair by name.")
@click.option("--versus", help="A second prediction, the candidate: read like --prediction, compared with it pairwise.")
@click.option("--metric", help="The figure that decides with --versus.  [default: that by which subgroups rank]")
@click.option("--reference-before", help="Reference layer of the earlier date: events are derived (change).")
@click.option("--prediction-before", help="Prediction layer of the earlier date (change).")
@_both("layer", "Layer of a file that holds several.")
@_both("where", "Keep features for which this holds, for example \"method = 'a' AND score > 0.2\".")
@_both("crs", "Coordinate system, where the file names none: EPSG:… or pixel.")
@_both("band", "Band of a raster, from 1.", type=click.IntRange(min=1))
@_both("nodata", "Value that means no data, where the file names none.", type=float)
@_both("unit", "Unit of heights: m, ft, us-ft.")
@_both("vertical_datum", "Vertical datum, by name.")
@click.option(
    "--recode", multiple=True, metavar="SIDE:FROM=TO", help="Change a class code or label while reading; repeatable."
)
@_both("id", "Column of identifiers; 'row' means the position in the file.")
@_both("label", "Column of class labels.")
@_both("score", "Column of confidences in [0, 1]; of a class map the band, band:2.")
@_both("kind", "Column of change kinds.")
@_both("date", "Column of dates or years.")
@_both("value", "Column of heights (checkpoints).")
@_both("stratum", "Column of sampling strata (points with a design).")
@_both("ignore", "Column that marks reference regions to ignore.")
@_both("unit_column", "Column that names the image or tile; matches never cross it.")
@click.option(
    "--cluster",
    default="auto",
    show_default=True,
    help="Column, grid:500m, grid:auto, or none (independence is assumed).",
)
@click.option("--by", multiple=True, help="Stratum field; numeric ones with edges, as area:100,500. Repeatable.")
@click.option("--attribute", multiple=True, help="Column to compare on matched pairs; repeatable.")
@click.option("--units", help="CSV of units (files, images) with their cluster and strata.")
@click.option("--aoi", help="Polygons; only what lies inside counts.")
@click.option("--iou", type=float, help="Least IoU of a match.  [default: 0.5]")
@click.option("--assignment", help="score, similarity, optimal or id.  [default: score for detection, else optimal]")
@click.option("--score-min", type=float, help="Operating point, fixed before the run.  [default: none, all count]")
@click.option(
    "--class-aware/--no-class-aware",
    default=None,
    help="Pair equal labels only.  [default: where both sides have labels]",
)
@click.option("--max-detections", type=click.IntRange(min=1), help="Cap on detections a unit.  [default: none]")
@click.option("--protocol", help="geoeval or coco.  [default: geoeval]")
@click.option("--boundary-tolerance", type=float, help="Metres, for boundary precision and recall.  [default: 1]")
@click.option("--buffer", type=float, help="Metres, for lines.  [default: 5]")
@click.option("--max-distance", type=float, help="Metres, for points.  [default: 5]")
@click.option("--date-tolerance", type=float, help="Largest difference of dates of a match.  [default: no condition]")
@click.option(
    "--align", help="Bring a prediction raster to the reference grid: nearest, mode, bilinear.  [default: refuse]"
)
@click.option("--design", help="How the points were drawn: stratified, simple_random, systematic, post_stratified.")
@click.option("--survey-rmse", type=float, help="RMSE of the checkpoints' own survey (ASPRS 2023).")
@click.option(
    "--assume-clean", is_flag=True, default=None, help="Everything not planted is certified clean (validation)."
)
@click.option("--on-invalid", default="repair", show_default=True, help="repair, refuse or drop invalid geometry.")
@click.option("--on-crs-mismatch", default="reproject", show_default=True, help="reproject or refuse.")
@click.option(
    "--on-unknown-unit", default="refuse", show_default=True, help="refuse or drop predictions of an unknown unit."
)
@click.option(
    "--drop-unmatched-ids", is_flag=True, default=None, help="Leave out predictions whose id the reference lacks."
)
@click.option(
    "--gate",
    multiple=True,
    metavar='"recall>=0.9"',
    help="A limit on the interval (or, with @value, the value); sets the exit code.",
)
@click.option(
    "--critical", multiple=True, metavar="FIELD=VALUE,…", help="Subgroups that must be there and clear; repeatable."
)
@click.option("--min-support", type=click.IntRange(min=0), default=0, help="Fewest observations of a subgroup.")
@click.option(
    "--confidence", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95, show_default=True
)
@click.option("--redraws", type=click.IntRange(min=1), default=2000, show_default=True, help="Bootstrap redraws.")
@click.option(
    "--ranked-redraws",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="Redraws of AP, medians and their like.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Processes for several units."
)
@click.option("--out", type=click.Path(file_okay=False), help="Write an evidence bundle below this folder.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of tables.")
def command(family: str, **given: Any) -> None:
    """Score a prediction against a reference.

    FAMILY is detection, footprint, vector, change, raster, elevation or validation. What is not given is guessed from
    the usual names, and every guess is printed.
    """
    from geoeval.cli.show import progress_bar, show_result
    from geoeval.evaluation import evaluate, with_demanded
    from geoeval.gates import exit_code
    from geoeval.summary import Policy

    if family not in FAMILIES:
        raise ConfigError(f"unknown family {family!r}; {nearest_spelling(family, FAMILIES)}")
    _refuse_foreign(family, given)
    evaluator = _evaluator(family, given)
    plan = _plan(given)
    policy = Policy(_gates(family, given["gate"]), _critical(given["critical"]), given["min_support"])
    pairing = with_demanded(_pairing(given), evaluator, policy)
    sources = {side: _source(side, given) for side in ("reference", "prediction")}
    if given["versus"] is not None:
        _compare(evaluator, sources, pairing, plan, policy, given)
    if given["metric"] is not None:
        raise ConfigError("--metric names the figure that decides between two predictions; give --versus too.")
    with progress_bar("units") as progress:
        result = evaluate(
            evaluator,
            sources["reference"],
            sources["prediction"],
            pairing=pairing,
            plan=plan,
            policy=policy,
            workers=given["workers"],
            progress=progress,
        )
    folder = None
    if given["out"]:
        from geoeval.bundling import write_result

        folder = write_result(result, evaluator, pairing, plan, policy, given["out"], sources)
    show_result(result, as_json=given["as_json"], folder=folder)
    raise SystemExit(exit_code(result.evaluation.gates))


def _compare(
    evaluator: Any, sources: dict[str, Any], pairing: Any, plan: Any, policy: Any, given: dict[str, Any]
) -> NoReturn:
    """Two predictions against one reference; gates are held to the candidate, and nothing else sets the exit code."""
    from dataclasses import replace

    from geoeval.cli.show import progress_bar
    from geoeval.cli.show_versus import show_comparison
    from geoeval.gates import exit_code
    from geoeval.versus import compare_two

    if given["out"]:
        raise ConfigError("--out writes the bundle of one prediction; evaluate each by itself, without --versus.")
    with progress_bar("units") as progress:
        comparison = compare_two(
            evaluator,
            sources["reference"],
            sources["prediction"],
            replace(sources["prediction"], path=given["versus"]),
            metric=given["metric"],
            pairing=pairing,
            plan=plan,
            policy=policy,
            workers=given["workers"],
            progress=progress,
        )
    show_comparison(comparison, as_json=given["as_json"])
    raise SystemExit(exit_code(comparison.candidate.evaluation.gates))


def _refuse_foreign(family: str, given: dict[str, Any]) -> None:
    for name, families in _ONLY.items():
        if given.get(name) is not None and family not in families:
            option = "--" + name.replace("_", "-")
            raise ConfigError(f"{option} is an option of {', '.join(families)}, not of {family}; leave it out.")


def _gates(family: str, texts: tuple[str, ...]) -> tuple[Any, ...]:
    from geoeval.gates import check_metrics, parse_gate
    from geoeval.keys import known_metrics

    gates = tuple(parse_gate(text, family) for text in texts)
    check_metrics(gates, {family: known_metrics(family)})
    return gates


def _evaluator(family: str, given: dict[str, Any]) -> Any:
    from geoeval.config.families import evaluator_of

    names = {
        "iou": "iou",
        "assignment": "assignment",
        "score_min": "score_min",
        "class_aware": "class_aware",
        "max_detections": "max_detections",
        "protocol": "protocol",
        "boundary_tolerance": "boundary_tolerance_m",
        "buffer": "buffer_m",
        "max_distance": "max_distance_m",
        "date_tolerance": "date_tolerance",
        "survey_rmse": "survey_rmse",
        "design": "design",
        "assume_clean": "assume_clean",
        "unit": "unit",
    }
    options = {
        field: given[option]
        for option, field in names.items()
        if given.get(option) is not None and family in _ONLY[option]
    }
    return evaluator_of(family, options)


def _plan(given: dict[str, Any]) -> Any:
    from geoeval.estimation import Plan

    return Plan(
        confidence=given["confidence"],
        redraws=given["redraws"],
        ranked_redraws=given["ranked_redraws"],
        seed=given["seed"],
        clustered=given["cluster"] != "none",
    )


def _pairing(given: dict[str, Any]) -> Any:
    from geoeval.options import Pairing

    _one_of("--on-invalid", given["on_invalid"], ("repair", "refuse", "drop"))
    _one_of("--on-crs-mismatch", given["on_crs_mismatch"], ("reproject", "refuse"))
    _one_of("--on-unknown-unit", given["on_unknown_unit"], ("refuse", "drop"))
    if given["align"] is not None:
        _one_of("--align", given["align"], ("nearest", "mode", "bilinear"))
    if given["design"] is not None:
        _one_of("--design", given["design"], ("stratified", "simple_random", "systematic", "post_stratified"))
    return Pairing(
        cluster=given["cluster"],
        by=tuple(given["by"]),
        attributes=tuple(given["attribute"]),
        aoi=given["aoi"],
        units=given["units"],
        on_invalid=given["on_invalid"],
        on_crs_mismatch=given["on_crs_mismatch"],
        on_unknown_unit=given["on_unknown_unit"],
        drop_unmatched_ids=bool(given["drop_unmatched_ids"]),
        align=given["align"],
        design=given["design"],
        unit=given["unit"],
    )


def _one_of(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ConfigError(f"{option}: unknown value {value!r}; {nearest_spelling(value, known)}")


def _source(side: str, given: dict[str, Any]) -> Any:
    from geoeval.options import Columns, Source

    def pick(name: str) -> Any:
        own = given.get(f"{side}_{name}")
        return own if own is not None else given.get(name)

    columns = {("unit" if name == "unit_column" else name): pick(name) for name in _COLUMNS}
    options = {name: pick(name) for name in _SIDED}
    options["band"] = options["band"] or 1
    return Source(
        given[side],
        given.get(f"{side}_before"),
        recode=_recode(side, given["recode"]),
        columns=Columns(**columns),
        **options,
    )


def _recode(side: str, texts: tuple[str, ...]) -> dict[str, str]:
    out: dict[str, str] = {}
    for text in texts:
        where, colon, change = text.partition(":")
        old, equals, new = change.partition("=")
        if not colon or not equals or where not in ("reference", "prediction") or not old:
            raise ConfigError(f"--recode: expected SIDE:FROM=TO such as prediction:1=0, got {text!r}.")
        if where == side:
            out[old] = new
    return out


def _critical(texts: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    out: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name or not values:
            raise ConfigError(f"--critical: expected FIELD=VALUE[,VALUE…] such as region=north,south, got {text!r}.")
        out[name] = (*out.get(name, ()), *values.split(","))
    return out
