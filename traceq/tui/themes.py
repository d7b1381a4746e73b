"""Two grounds of our own; the palette offers textual's others too."""

from __future__ import annotations

from textual.theme import Theme

DARK = Theme(
    name="traceq-dark",
    primary="#4dabf7",
    secondary="#63e6be",
    accent="#ffb224",
    foreground="#dee2e6",
    background="#101418",
    surface="#101418",
    panel="#1b232b",
    warning="#ffb224",
    error="#ff6b6b",
    success="#51cf66",
    dark=True,
)
LIGHT = Theme(
    name="traceq-light",
    primary="#0b66c3",
    secondary="#087f5b",
    accent="#b35900",
    foreground="#1c2126",
    background="#fbfbf9",
    surface="#fbfbf9",
    panel="#e9ebe6",
    warning="#b35900",
    error="#c92a2a",
    success="#2b8a3e",
    dark=False,
)
