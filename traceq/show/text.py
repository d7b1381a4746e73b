"""Text from a trace, made safe and short enough for a terminal."""

from __future__ import annotations

import re

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
HEADING = {"pct": "%", "ns": ""}
SPECIAL = re.compile(r"[\\`*~<>\[\]]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|&(?=#?\w+;)")  # what Markdown takes for its own
KERNEL_NAMES = {"name", "kernel", "kernel_name"}
COMMON = re.compile(
    r"^void |\(anonymous namespace\)::|at::native::|, std::array<char\*, \d+ul>|\((?:[^()]|\([^()]*\))*\)$"
)
TIMED = {"kernel", "memcpy", "memset", "memop", "gemm", "host", "step", "a", "b"}


def printable(text: str) -> str:
    """Control and direction characters as visible escapes: a kernel's name never moves the cursor."""
    return UNSAFE.sub(lambda c: f"\\x{ord(c[0]):02x}" if ord(c[0]) < 256 else f"\\u{ord(c[0]):04x}", text)


def escape(text: str) -> str:
    """`text` so that Markdown shows every character of it; GitHub knows no escape for the $ of formulas but a tag."""
    return SPECIAL.sub(r"\\\g<0>", re.sub(r"\s+", " ", text)).replace("$", "<span>$</span>")


def heading(name: str, unit: str | None) -> str:
    """A column's name without what its cells say themselves: `gemm_pct_of_kernel` is `gemm % of kernel`.

    A time whose one word could be a count or a label keeps a second: `kernel_ns` is `kernel time`, beside `kernels`.
    """
    if unit is None:
        return name.replace("_", " ")
    words = [HEADING.get(word, word) for word in name.split("_") if HEADING.get(word, word)]
    return " ".join([*words, "time"] if unit == "ns" and words[0] in TIMED and len(words) == 1 else words)


def short_name(text: str, width: int) -> str:
    """A kernel's name that fits: without what most have in common, then cut in its middle."""
    from rich.cells import cell_len

    if cell_len(text) <= width:
        return text
    text = COMMON.sub("", text)
    tail = (width - 1) // 3
    return text if cell_len(text) <= width or tail < 4 else f"{text[: width - 1 - tail]}…{text[-tail:]}"
