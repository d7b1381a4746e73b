"""Which kernels of one run answer to which of another, when names are expected to change.

Kernels are paired by count, not by position: by name, operator and shapes; by name; by operator and shapes; and, for
heavy ones, by what they compute. A kernel that Inductor made is then mapped to the kernels of the other side whose
operators its source or its name lists; of several such, to those whose tensors have as many elements as it goes
through, in the order in which both run. What is left over was removed or added. Both sides are treated alike, so
turning them round turns every sign.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, pairwise

from traceq.analysis.constants import GENERATED, HEAVY
from traceq.analysis.names import generic, spelled
from traceq.analysis.shares import split

REDUCING = ("norm", "softmax", "pool", "reduction", "loss")
PHASES = ("forward", "backward", "optimizer")
# Operators as eager kernels are launched by, and as Inductor calls what became of them.
ALSO_CALLED: Mapping[str, tuple[str, ...]] = {
    "copy_": ("_to_copy", "copy", "clone", "contiguous", "cat", "constant_pad_nd", "slice_backward"),
    "fill_": ("zeros", "ones", "full", "fill", "zeros_like", "ones_like", "full_like", "zero", "new_zeros", "new_full",
              "embedding_dense_backward"),
    "zero_": ("zeros", "zeros_like", "new_zeros", "zero", "full", "embedding_dense_backward"),
    "clamp_min": ("relu",),
    "clamp_min_": ("relu", "relu_"),
    "index_select": ("embedding",),
    "index": ("embedding",),
    "gather": ("embedding",),
    "cat": ("stack", "select_backward", "slice_backward"),
    "masked_fill_": ("masked_fill", "where"),
    "native_layer_norm": ("layer_norm",),
    "cudnn_batch_norm": ("native_batch_norm", "_native_batch_norm_legit_functional"),
    "cudnn_batch_norm_backward": ("native_batch_norm_backward",),
    "nll_loss_forward": ("nll_loss_nd", "cross_entropy_loss"),
    "sum": ("sum_to_size",),
    "embedding_dense_backward": ("embedding_backward",),
}  # fmt: skip
# What eager kernels' names tell of their operator where none was recorded; the first that matches counts.
TOLD_BY_NAME = tuple(
    (re.compile(pattern), op)
    for pattern, op in (
        ("layer_norm_grad|GammaBeta|cuComputeGradInput", "native_layer_norm_backward"),
        ("layer_norm", "native_layer_norm"),
        ("batch_norm_backward|bn_bw", "native_batch_norm_backward"),
        ("batch_norm|bn_fw", "native_batch_norm"),
        ("[Gg]elu.*[Bb]ackward", "gelu_backward"),
        ("[Gg]elu", "gelu"),
        ("silu_backward", "silu_backward"),
        ("silu", "silu"),
        ("threshold|clamp_scalar", "relu"),
        ("tanh_backward", "tanh_backward"),
        ("tanh", "tanh"),
        ("sigmoid_backward", "sigmoid_backward"),
        ("sigmoid", "sigmoid"),
        ("masked_softmax|softmax_warp_forward|SoftMaxForward", "_softmax"),
        ("softmax_warp_backward|SoftMaxBackward", "_softmax_backward_data"),
        ("copy_kernel", "copy_"),
        ("FillFunctor", "fill_"),
        ("CUDAFunctor_add|CUDAFunctorOnSelf_add|AddFunctor", "add"),
        ("MulFunctor", "mul"),
        ("DivFunctor", "div"),
        ("MeanOps", "mean"),
        ("sum_functor|func_wrapper_t", "sum"),
        ("embedding_backward|EmbeddingBackward", "embedding_dense_backward"),
        ("indexSelect|vectorized_gather", "embedding"),
    )
)


@dataclass(frozen=True)
class Kernel:
    """Kernels alike in a step: how many, and their time in whole ns.

    `largest` is the elements of the operator's largest input, `elements` what a generated kernel goes through, `place`
    where they run in a period; None where that was not recorded.
    """

    category: str
    origin: str
    name: str
    short_name: str
    phase: str
    op: str | None
    module: str | None
    shapes: str | None
    types: str | None
    count: Fraction
    ns: int
    largest: int | None = None
    elements: int | None = None
    place: float | None = None


@dataclass(frozen=True)
class Contents:
    """What is told of a generated kernel's inside: its operators, whether there are more, how many elements."""

    ops: tuple[str, ...] = ()
    has_more: bool = True
    elements: frozenset[int] = frozenset()


Told = Mapping[str, Contents]  # by the kernel's name


@dataclass(frozen=True)
class Pair:
    """What became of kernels: `how` is same, changed (another kernel does it), removed or added."""

    how: str
    first: Kernel | None
    second: Kernel | None


@dataclass(frozen=True)
class Fused:
    """Generated kernels of one side (`made`) and the kernels of the other that they replaced."""

    made: Kernel
    replaced: tuple[Kernel, ...]
    is_second: bool


@dataclass(frozen=True)
class Matching:
    """Every kernel of both sides, each in one place."""

    pairs: tuple[Pair, ...]
    fused: tuple[Fused, ...]


def match(first: Sequence[Kernel], second: Sequence[Kernel], told: tuple[Told, Told] = ({}, {})) -> Matching:
    """Match two sides; `told` has what is known of the generated kernels of each."""
    pairs: list[Pair] = []
    a, b = list(first), list(second)
    for how, key in _PASSES:
        a, b, found = _paired(a, b, how, key)
        pairs += found
    eager_a, made_a = _parted(a)
    eager_b, made_b = _parted(b)
    phases = [{k.phase for k in side} & set(PHASES) for side in (first, second)]
    eager_a, in_b = _fused(eager_a, made_b, told[1], phases[1])
    eager_b, in_a = _fused(eager_b, made_a, told[0], phases[0])
    pairs += [Pair("removed", k, None) for k in [*eager_a, *(f.made for f in in_a if not f.replaced)]]
    pairs += [Pair("added", None, k) for k in [*eager_b, *(f.made for f in in_b if not f.replaced)]]
    fused = [replace(f, is_second=True) for f in in_b if f.replaced] + [f for f in in_a if f.replaced]
    return Matching(tuple(pairs), tuple(fused))


def _parted(kernels: Sequence[Kernel]) -> tuple[list[Kernel], list[Kernel]]:
    """What may have been replaced, and what may have replaced it."""
    made = [k for k in kernels if _is_made(k)]
    return [k for k in kernels if not _is_made(k)], made


def _is_made(kernel: Kernel) -> bool:
    return kernel.origin in GENERATED and kernel.category not in HEAVY


def _by_all(k: Kernel) -> Hashable:
    return k.category, generic(k.name), k.phase, k.op, k.shapes, k.types


def _by_name(k: Kernel) -> Hashable:
    return k.category, generic(k.name)


def _by_spelling(k: Kernel) -> Hashable:
    return k.category, spelled(k.name)


def _by_op(k: Kernel) -> Hashable:
    return (k.category, k.op, k.shapes, k.types) if k.op and k.shapes and k.origin not in GENERATED else None


def _by_module(k: Kernel) -> Hashable:
    return (k.category, k.phase, k.module) if k.module and k.category in HEAVY else None


def _by_heavy(k: Kernel) -> Hashable:
    return k.category if k.category in HEAVY else None


_PASSES: tuple[tuple[str, Callable[[Kernel], Hashable]], ...] = (
    ("same", _by_all),
    ("same", _by_name),
    ("same", _by_spelling),
    ("changed", _by_op),
    ("changed", _by_module),
    ("changed", _by_heavy),
)


def _paired(
    a: Sequence[Kernel], b: Sequence[Kernel], how: str, key: Callable[[Kernel], Hashable]
) -> tuple[list[Kernel], list[Kernel], list[Pair]]:
    """Pairs of kernels with one key, as many as both sides have; what is left of each side."""
    sides = (_grouped(a, key), _grouped(b, key))
    left = tuple([k for k in side if key(k) not in sides[0] or key(k) not in sides[1]] for side in (a, b))
    pairs: list[Pair] = []
    for shared in sorted(set(sides[0]) & set(sides[1]), key=repr):
        groups = [_merged(side[shared]) for side in sides]
        # Heavy work may be cut into another number of kernels; of others, what one side has more is left over.
        is_whole = how == "changed" and groups[0].category in HEAVY
        count = min(group.count for group in groups)
        taken = [group if is_whole else _take(group, count) for group in groups]
        pairs.append(Pair(how, *taken))
        for rest, group, part in zip(left, groups, taken, strict=True):
            if group != part:
                rest.append(replace(group, count=group.count - part.count, ns=group.ns - part.ns))
    return left[0], left[1], pairs


def _grouped(kernels: Iterable[Kernel], key: Callable[[Kernel], Hashable]) -> dict[Hashable, list[Kernel]]:
    groups: dict[Hashable, list[Kernel]] = defaultdict(list)
    for kernel in kernels:
        if (found := key(kernel)) is not None:
            groups[found].append(kernel)
    return groups


def _merged(group: Sequence[Kernel]) -> Kernel:
    """One row for several: named after the longest of them."""
    longest = max(group, key=lambda k: (k.ns, k.name))
    return replace(longest, count=sum((k.count for k in group), Fraction(0)), ns=sum(k.ns for k in group))


def _take(kernel: Kernel, count: Fraction) -> Kernel:
    if count == kernel.count:
        return kernel
    return replace(kernel, count=count, ns=round(kernel.ns * count / kernel.count))


def _fused(
    eager: Sequence[Kernel], made: Sequence[Kernel], told: Told, phases: Set[str]
) -> tuple[list[Kernel], list[Fused]]:
    """Kernels of `eager` that `made` replaced, dealt out among those that may contain them; the rest.

    `phases` are those that the run of `made` has.
    """
    named: dict[str, list[int]] = defaultdict(list)
    open_ended: list[int] = []
    sizes: list[frozenset[int | None]] = []
    for n, kernel in enumerate(made):
        contents = told.get(kernel.name, Contents())
        for op in contents.ops:
            named[op].append(n)
        if contents.has_more or not contents.ops:
            open_ended.append(n)
        sizes.append((contents.elements | {kernel.largest, kernel.elements}) - {None})
    choices = [_candidates(kernel, made, named, open_ended, phases) for kernel in eager]
    fitting = {n for kernel, fits in zip(eager, choices, strict=True) for n in fits if kernel.largest in sizes[n]}
    alike: dict[tuple[str | None, tuple[int, ...], bool], list[Kernel]] = defaultdict(list)
    rest: list[Kernel] = []
    for kernel, fits in zip(eager, choices, strict=True):
        as_large = tuple(n for n in fits if kernel.largest in sizes[n])
        # The second stage of a sum goes through what the first has left, which no kernel of the other side does.
        later = (n for n in fits if n not in fitting and sizes[n] and made[n].category == "fused_reduction")
        among = (*as_large, *(later if kernel.category in REDUCING else ())) if as_large else tuple(fits)
        if among:
            alike[_op_of(kernel), among, as_large == among].append(kernel)
        else:
            rest.append(kernel)
    replaced: list[list[Kernel]] = [[] for _ in made]
    for (_, among, is_sized), kernels in alike.items():
        for n, part in _dealt(kernels, made, among, is_sized):
            replaced[n].append(part)
    return rest, [Fused(k, tuple(r), is_second=False) for k, r in zip(made, replaced, strict=True)]


def _dealt(
    kernels: Sequence[Kernel], made: Sequence[Kernel], among: Sequence[int], by_count: bool
) -> list[tuple[int, Kernel]]:
    """Each kernel, or parts of it, with the number of the generated one that takes it.

    Both are laid out in the order in which they run, on lines of one length, and what lies side by side belongs
    together: the first of twelve to the first of twelve. They are as long as they are many, where their elements say
    that they are alike; else as their time.
    """
    order = sorted(among, key=lambda n: (_by_place(made[n]), n))
    begins = _laid_out([_length([made[n]], by_count) for n in order])
    # What one call of an operator launches stays together.
    calls = _grouped(kernels, lambda k: (k.shapes, k.types, k.module, k.phase) if k.shapes else k)
    rows = sorted(calls.values(), key=lambda call: min(map(_by_place, call)))
    parts = []
    first = 0
    for call, (start, end) in zip(rows, pairwise(_laid_out([_length(c, by_count) for c in rows])), strict=True):
        while first < len(order) - 1 and begins[first + 1] <= start:
            first += 1
        last = first
        while last < len(order) - 1 and begins[last + 1] < end:
            last += 1
        shares = [min(end, begins[n + 1]) - max(start, begins[n]) for n in range(first, last + 1)]
        if not any(shares):
            shares = [Fraction(1)]
        for kernel in call:
            for n, share, ns in zip(order[first:], shares, split(kernel.ns, shares), strict=False):
                if share:
                    parts.append((n, replace(kernel, ns=ns, count=kernel.count * share / sum(shares))))
    return parts


def _length(call: Sequence[Kernel], by_count: bool) -> Fraction:
    return max(k.count for k in call) if by_count else Fraction(sum(k.ns for k in call))


def _by_place(kernel: Kernel) -> tuple[bool, float, str]:
    return kernel.place is None, kernel.place or 0.0, repr(kernel)


def _laid_out(lengths: Sequence[Fraction]) -> list[Fraction]:
    """Where each begins on a line of length 1, and where the last ends."""
    whole = sum(lengths) or Fraction(1)
    return [Fraction(0), *(length / whole for length in accumulate(lengths))]


def _candidates(
    kernel: Kernel, made: Sequence[Kernel], named: Mapping[str, list[int]], open_ended: Sequence[int], phases: Set[str]
) -> list[int]:
    """Generated kernels that may contain `kernel`: by its operator, else those of which not all operators are known."""
    if kernel.category in (*HEAVY, "comm"):
        return []
    for choices in (_naming(_op_of(kernel), named), open_ended):
        if fits := [n for n in choices if _may_be_in(kernel, made[n], phases)]:
            return fits
    return []


def _op_of(kernel: Kernel) -> str | None:
    """The operator as recorded, else as the name tells it."""
    return kernel.op or next((op for pattern, op in TOLD_BY_NAME if pattern.search(kernel.name)), None)


def _naming(op: str | None, named: Mapping[str, list[int]]) -> list[int]:
    if op is None:
        return []
    bare = op.removeprefix("aten::")
    words = dict.fromkeys([bare, bare.rstrip("_"), *ALSO_CALLED.get(bare, ())])
    return sorted({n for word in words for n in named.get(word, ())})


def _may_be_in(kernel: Kernel, made: Kernel, phases: Set[str]) -> bool:
    """Whether phases allow it; one that the other run lacks tells nothing, as of an optimizer that was compiled."""
    return kernel.phase not in phases or made.phase not in PHASES or kernel.phase == made.phase
