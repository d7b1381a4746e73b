"""What the name of a kernel tells, and when two names are one kernel's."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

NUMBERED = re.compile(r"(_\d+)+(?=$)|(?<=_)[0-9a-f]{16,}(?=_|$)")
# How the demanglers of torch (libiberty's) and of nsys (NVIDIA's) spell one name, made alike.
SPELLINGS = tuple(
    (re.compile(pattern), alike)
    for pattern, alike in (
        (r"\(anonymous namespace\)", "<unnamed>"),
        (r"\[lambda\((.*?)\) \(instance (\d+)\)\]", r"{lambda(\1)#\2}"),
        (r"\(bool\)0", "false"),
        (r"\(bool\)1", "true"),
        (r"\((?:unsigned |signed )?(?:char|short|int|long|long long)\)(?=-?\d)", ""),
        (r"\b(\d+)(?:u|ul|l|ull|ll)\b", r"\1"),
        (r"\bconst\b", ""),
        (r"\bvoid (?=[\w<])", ""),
        (r"\s+", ""),
    )
)
PRECISIONS = (  # as the names of cuBLAS, CUTLASS and cuDNN say it
    ("tf32", "tf32"),
    ("bf16|_tst_|_tss_", "bf16"),
    ("e4m3|e5m2|fp8", "fp8"),
    ("f16f16|fp16|hsh|_h884|_h1688|_h16816", "fp16"),
    ("sgemm|f32f32_f32f32|ffma|_s884|simt", "fp32"),
    ("dgemm|f64", "fp64"),
    ("i8816|imma|int8", "int8"),
)


def generic(name: str) -> str:
    """A name without what differs from one compilation to the next: running numbers and hashes."""
    return NUMBERED.sub("", name) or name


@cache
def spelled(name: str) -> str:
    """A generic name as every demangler would spell it."""
    name = generic(name)
    for pattern, alike in SPELLINGS:
        name = pattern.sub(alike, name)
    return _without_calls(name)


def _without_calls(name: str) -> str:
    """A name without the arguments of templates of functions: nsys says T1 of them."""
    kept = []
    depth = 0
    for before, now in pairwise(f" {name}"):
        if now == "(" and (depth or before == ">"):
            depth += 1
        if not depth:
            kept.append(now)
        elif now == ")":
            depth -= 1
    return "".join(kept)


def precision(name: str) -> str | None:
    """The precision that the name of a matrix kernel tells, if it does."""
    return next((kind for pattern, kind in PRECISIONS if re.search(pattern, name)), None)
