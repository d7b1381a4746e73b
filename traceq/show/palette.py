"""One colour for each category, cause, phase and role, wherever it is drawn."""

from __future__ import annotations

import zlib

COLOURS = {
    "gemm": "blue", "conv": "dodger_blue2", "attention": "cyan", "rnn": "steel_blue1",
    "norm": "magenta", "softmax": "orchid", "reduction": "medium_purple", "elementwise": "yellow",
    "copy": "grey62", "memcpy": "grey62", "memset": "grey42", "indexing": "khaki3", "embedding": "dark_khaki",
    "fused_pointwise": "green", "fused_reduction": "spring_green3", "fused_foreach": "dark_sea_green",
    "comm": "red", "other": "white",
    "sync": "red", "dataloader": "dark_orange", "cpu_ops": "yellow", "python": "gold3", "launch_latency": "blue",
    "queue_latency": "grey62", "cuda_api": "cyan", "compiled_runtime": "green", "compile": "bright_green",
    "allocator": "magenta", "module_load": "orchid", "profiler": "grey50", "in_graph": "grey42",
    "carried_over": "grey42", "dependency": "medium_purple", "unexplained": "bright_red",
    "forward": "blue", "backward": "green", "optimizer": "magenta", "data": "dark_orange",
    "launch": "blue", "graph_launch": "green", "wait": "dark_orange", "alloc": "magenta", "load": "orchid",
}  # fmt: skip
SPARE = ("steel_blue", "tan", "pale_green3", "light_salmon3", "plum3", "sky_blue3")


def colour(what: str) -> str:
    """Rich's name of the colour of `what`; the same for one word everywhere and always."""
    return COLOURS.get(what) or SPARE[zlib.crc32(what.encode()) % len(SPARE)]


SIGNS = {  # one letter for each word, by what it says of a lane; colour is never the only sign
    "stream": {
        "gemm": "g", "conv": "c", "attention": "a", "rnn": "r", "norm": "n", "softmax": "s", "pool": "p",
        "reduction": "d", "elementwise": "e", "copy": "y", "indexing": "i", "embedding": "b", "rng": "z", "sort": "o",
        "quantize": "q", "moe": "m", "fft": "f", "loss": "l", "fused_pointwise": "w", "fused_reduction": "t",
        "fused_foreach": "h", "comm": "k", "memcpy": "x", "memset": "v", "graph": "j", "other": "u",
    },
    "idle": {
        "in_graph": "g", "carried_over": "y", "launch_latency": "l", "queue_latency": "q", "dependency": "e",
        "unexplained": "u", "sync": "s", "profiler": "f", "module_load": "o", "dataloader": "d", "allocator": "m",
        "cuda_api": "a", "compile": "k", "cpu_ops": "c", "compiled_runtime": "r", "python": "p",
    },
    "ops": {"forward": "f", "backward": "b", "optimizer": "o", "data": "d", "other": "u"},
    "calls": {
        "launch": "l", "graph_launch": "g", "memcpy": "m", "memset": "z", "sync": "s", "wait": "w", "alloc": "a",
        "load": "o", "other": "u",
    },
    "ranges": {"record_function": "r", "push_pop": "p", "start_end": "e"},
    "steps": {"step": "s"},
}  # fmt: skip


def sign(kind: str, what: str) -> str:
    """The letter of `what` on a lane of that kind; of a word that a user made, a question mark."""
    return SIGNS.get(kind, {}).get(what, "?")
