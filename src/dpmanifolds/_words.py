"""Numbers as people read them."""

from __future__ import annotations

import math


def tell_degrees(angle: float) -> str:
    """An angle in radians.

    >>> tell_degrees(0.05)
    '2.86 degrees'
    """
    return f"{math.degrees(angle):.3g} degrees"


def tell_percent(share: float) -> str:
    """A share, without powers of ten.

    >>> tell_percent(0.0234), tell_percent(12.89)
    ('2.3 %', '1289 %')
    """
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.0f} %"
