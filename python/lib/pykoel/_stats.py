"""The figures of a filter."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Stats:
    """The figures of a :class:`pykoel.Filter`, as ``stats()`` returns them."""

    items: int
    """The number of items."""
    size_in_bytes: int
    """The memory that the filter takes."""
    rate: float
    """The fraction of new items that are taken for seen now."""
    rate_at_capacity: float
    """The same, when the filter holds as many items as it was made for."""
    load: float
    """The part of the table that is taken."""
    growth: float
    """How many times as large as at first the table is."""
    fingerprint_bits: int
    """The bits of an item's fingerprint, before growth takes some."""
    max_bytes: int | None
    """The most memory that the filter takes, if there is a limit."""
    remembers: int | None
    """For how many seconds items are remembered at least, or None if for ever."""
