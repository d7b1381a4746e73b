"""What this GPU reaches: bytes a second of a plain copy, FLOP/s of a large matrix product in each number format.

    peaks.measure()                     # {"gpu", "uuid", "bytes_per_s", "flops": {"bfloat16": …}}; None without CUDA
    python -m traceq.capture.peaks      # prints it as JSON

It takes some seconds once for each GPU, and is kept in the user's cache folder. It needs the GPU for itself, so a
capture measures in a process of its own before the script runs.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import platformdirs

VERSION = 1
SECOND = 1.0
BATCH_MS = 20.0
COPY_BYTES = 1 << 30  # far beyond any cache
BLOCKS = (1024, 2048, 4096, 8192)
LARGE, SMALL = 8192, 4096  # rows and columns of the matrices; the small ones for what runs without tensor cores
Peaks = dict[str, Any]


def measure() -> Peaks | None:
    """The peaks of the current GPU, from the cache if they were measured before; None where there is no CUDA."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    uuid = str(getattr(properties, "uuid", "")) or None
    kept = _kept_at(uuid or properties.name)
    if (known := _read(kept)) is not None:
        return known
    with torch.no_grad(), torch.cuda.device(torch.cuda.current_device()):
        flops = {name: rate for name, call, flop in _products(torch) if (rate := _rate(torch, call, flop))}
        found = {"gpu": properties.name, "uuid": uuid, "bytes_per_s": _bandwidth(torch), "flops": flops}
    torch.cuda.empty_cache()
    _keep(kept, found)
    return found


# The cache ------------------------------------------------------------------------------------------------------------


def _kept_at(gpu: str) -> Path:
    return Path(platformdirs.user_cache_dir("traceq")) / f"peaks-{re.sub('[^0-9A-Za-z-]+', '-', gpu)}.json"


def _read(kept: Path) -> Peaks | None:
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        found = json.loads(kept.read_text("utf-8"))
        if found["version"] == VERSION:
            peaks: Peaks = found["peaks"]
            return peaks
    return None


def _keep(kept: Path, peaks: Peaks) -> None:
    """Write the whole file or none; a folder that cannot be written only means measuring again."""
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps({"version": VERSION, "peaks": peaks}), "utf-8")
        os.replace(part, kept)


# Measuring ------------------------------------------------------------------------------------------------------------


def _bandwidth(torch: Any) -> int | None:
    """Bytes read and written a second by the best of some plain copies; None without Triton."""
    try:
        copy = importlib.import_module("traceq.capture.copy_kernel").copy
    except ImportError:
        return None
    free, _ = torch.cuda.mem_get_info()
    count = min(COPY_BYTES, free // 4) // 4
    source = torch.ones(count, dtype=torch.float32, device="cuda")
    target = torch.empty_like(source)
    rates = []
    for block in BLOCKS:
        launch = partial(copy[(-(-count // block),)], source, target, count, BLOCK=block)
        rates.append(_rate(torch, launch, 8 * count, len(BLOCKS)))
    return max((rate for rate in rates if rate), default=None)


def _products(torch: Any) -> Iterator[tuple[str, Callable[[], Any], int]]:
    """For each number format its name (as in `devices.peak_flops`), a product of square matrices, its operations."""
    free, _ = torch.cuda.mem_get_info()
    large = LARGE if free > 2 << 30 else SMALL
    for name, size, precision in (
        *(("float64", SMALL, "highest"), ("float32", SMALL, "highest"), ("tf32", large, "high")),
        *(("float16", large, "highest"), ("bfloat16", large, "highest")),
    ):
        dtype = torch.float32 if name == "tf32" else getattr(torch, name)
        with _precision(torch, precision):
            a, b = (torch.randn(size, size, dtype=dtype, device="cuda") for _ in range(2))
            yield name, partial(torch.mm, a, b), 2 * size**3
    yield from _narrow_products(torch, large)


def _narrow_products(torch: Any, size: int) -> Iterator[tuple[str, Callable[[], Any], int]]:
    """Formats of one byte, where the GPU and this torch have them."""
    whole = torch.randint(-8, 8, (size, size), dtype=torch.int8, device="cuda")
    yield "int8", partial(torch._int_mm, whole, whole.t()), 2 * size**3
    if hasattr(torch, "float8_e4m3fn") and torch.cuda.get_device_capability() >= (8, 9):
        a, b = (torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
        one = torch.ones((), device="cuda")
        scaled = partial(torch._scaled_mm, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        yield "float8", partial(scaled, a, b.t()), 2 * size**3


@contextlib.contextmanager
def _precision(torch: Any, wanted: str) -> Iterator[None]:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(wanted)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _rate(torch: Any, call: Callable[[], Any], work: int, share: int = 1) -> int | None:
    """`work` a second in the fastest of the batches that fit into a second; None where the GPU cannot do it."""
    try:
        for _ in range(3):
            call()
        calls = max(1, round(BATCH_MS / max(_batch_ms(torch, call, 3) / 3, 1e-3)))
        until = time.monotonic() + SECOND / share
        best_ms = _batch_ms(torch, call, calls)
        while time.monotonic() < until:
            best_ms = min(best_ms, _batch_ms(torch, call, calls))
    except Exception:  # a format that this GPU, this torch or this memory does not do
        return None
    return round(work * calls / (best_ms / 1e3))


def _batch_ms(torch: Any, call: Callable[[], Any], calls: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(calls):
        call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def main() -> int:
    """Print the peaks of this GPU as JSON."""
    found = measure()
    if found is None:
        print("traceq: error: no CUDA GPU that torch can use, so there are no peaks to measure", file=sys.stderr)
        return 1
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
