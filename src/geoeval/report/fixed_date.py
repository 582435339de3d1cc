"""A fixed date for layers: GDAL stamps the time of day, and equal content needs equal bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

DATE = "2000-01-01T00:00:00.000Z"


@contextmanager
def fixed_date(date: str | None = None) -> Iterator[None]:
    """GDAL writes this date (:data:`DATE` where none is given) instead of the time of day.

    Examples
    --------
    >>> import pyogrio
    >>> with fixed_date():
    ...     pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
    '2000-01-01T00:00:00.000Z'
    """
    import pyogrio

    before = pyogrio.get_gdal_config_option("OGR_CURRENT_DATE")
    pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": date or DATE})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({"OGR_CURRENT_DATE": before})
