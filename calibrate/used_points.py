"""Which points a profile was fitted on, so that no check counts them as unseen."""

from __future__ import annotations

import hashlib

from calibrate.points import Point, key_of
from simulator.hardware.profile import Profile

_DIGITS = 12
"""Hexadecimal digits: a million points collide with a chance of one in five hundred."""


def digest_of(point: Point) -> str:
    """Return a short hash of a point, as a profile's `[[constants.fit]]` lists it in `used`."""
    return hashlib.sha256(key_of(point).encode()).hexdigest()[:_DIGITS]


def used_points(profile: Profile) -> frozenset[str]:
    """Return the digests of all points that fitted any block of a profile."""
    return frozenset(digest for record in profile.constants.fit for digest in record.used)
