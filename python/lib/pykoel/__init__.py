"""koel for Python: have we seen this before? One set for all threads, in a few bytes an item, kept in a file."""

from ._pykoel import Filter, __version__
from ._stats import Stats

__all__ = ["Filter", "Stats", "__version__"]
