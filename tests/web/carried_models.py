"""The models that the tour carries in its page, as their families say."""

from __future__ import annotations

from saccade.families import families

LIVE = tuple(name for each in families().values() for name in each.live)
