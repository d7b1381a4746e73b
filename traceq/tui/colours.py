"""Colours of categories, causes and origins, dark enough on a light ground and light enough on a dark one."""

from __future__ import annotations

from functools import cache

from rich.color import Color as RichColor
from textual.color import Color

from traceq.show.palette import colour

PLAIN = {  # what a terminal's own sixteen colours are like is its user's choice; here they are ours
    "blue": "#4c8dff", "cyan": "#22b8cf", "green": "#40c057", "yellow": "#f5c211", "red": "#fa5252",
    "magenta": "#e64fae", "white": "#adb5bd", "bright_red": "#ff8787", "bright_green": "#8ce99a",
}  # fmt: skip
LIGHTEST_ON_LIGHT = 0.48
DARKEST_ON_DARK = 0.42
STEPS = 20


@cache
def shade(what: str, is_dark: bool) -> str:
    """The colour of `what` as #rrggbb, readable on the ground."""
    name = colour(what)
    red, green, blue = RichColor.parse(PLAIN.get(name, name)).get_truecolor()
    made = Color(red, green, blue)
    for step in range(STEPS):
        if is_dark and made.brightness < DARKEST_ON_DARK:
            made = Color(red, green, blue).lighten(step / STEPS)
        elif not is_dark and made.brightness > LIGHTEST_ON_LIGHT:
            made = Color(red, green, blue).darken(step / STEPS)
        else:
            break
    return made.hex6
