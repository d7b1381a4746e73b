"""Colours of categories, causes and origins, dark enough on a light ground and light enough on a dark one."""

from __future__ import annotations

from functools import cache

from rich.color import Color as RichColor
from textual.color import Color

from traceq.show.palette import colour

LIGHTEST_ON_LIGHT = 0.42
DARKEST_ON_DARK = 0.38
STEPS = 20
NEUTRAL = Color(127, 127, 127)


@cache
def shade(what: str, is_dark: bool) -> str:
    """The colour of `what` as #rrggbb, readable on the ground."""
    red, green, blue = RichColor.parse(colour(what)).get_truecolor()
    made = Color(red, green, blue)
    for step in range(STEPS):
        if is_dark and made.brightness < DARKEST_ON_DARK:
            made = Color(red, green, blue).lighten(step / STEPS)
        elif not is_dark and made.brightness > LIGHTEST_ON_LIGHT:
            made = Color(red, green, blue).darken(step / STEPS)
        else:
            break
    return made.hex6
