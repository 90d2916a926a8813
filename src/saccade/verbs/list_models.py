"""``list_models``: the names of the models that ship with saccade."""

from __future__ import annotations

from fnmatch import fnmatchcase


def list_models(pattern: str = "*") -> list[str]:
    """List the models that ship with saccade, for ``saccade.load``.

    Args:
        pattern: only names like this one. ``*`` stands for anything.

    Returns:
        The names, sorted. It is empty where no name fits.

    Example:
        >>> import saccade
        >>> saccade.list_models("hattnet-ctx-m*")
        ['hattnet-ctx-mbg', 'hattnet-ctx-mdist', 'hattnet-ctx-mref']
    """
    from saccade.zoo import shipped

    return [name for name in sorted(shipped()) if fnmatchcase(name, pattern)]
