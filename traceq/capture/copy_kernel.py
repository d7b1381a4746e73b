"""The copy that the memory bandwidth of a GPU is measured with."""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]
def copy(source, target, count, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Copy `count` elements, BLOCK of them in a program."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    is_inside = at < count
    tl.store(target + at, tl.load(source + at, mask=is_inside), mask=is_inside)
