"""Every constant of the verdicts, named and in one place; docs/verdict.md says where each comes from."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

# What a kernel may be for -------------------------------------------------------------------------------------------

HEAVY = ("gemm", "conv", "attention", "rnn")  # no compiler does away with these
LAUNCH_BOUND = ("cpu_ops", "python", "cuda_api", "compiled_runtime", "launch_latency")  # fewer launches help
GENERATED = ("inductor",)  # origins whose kernels replace others and are named after what they compute

# Comparing two runs -------------------------------------------------------------------------------------------------

ANCHOR_PCT = 3.0  # heavy time that changes by more is named with the kernels that changed
NO_GAIN_RATIO = 1.03  # a step that is less than this many times as fast, or as slow, has not changed in practice
OWN_KERNELS_PCT = 10.0  # a first step with more of its time in kernels that no later step has is warm-up
LINKED_PCT = 95.0  # below this share of kernel time with known operators, categories go by names on both sides
ANOTHER_MODEL_PCT = 50.0  # heavy time that finds no partner by name, operator or shape in the other run
SKEWED_PCT = 5.0  # mean and median period that differ by more are said to

# What compiling can bring ---------------------------------------------------------------------------------------------
# Fixed times of the host are those of one CPU core of 2024 under torch 2.11; launches cost what the trace shows.

LEAST_STEP_NS = 2_000  # no step with GPU work is shorter: the divisor of the bound on any compile mode
COMPILED_CALL_NS = 50_000  # to enter compiled code: cache lookup, guards, prologue
GRAPH_CALL_NS = 90_000  # the same, with the inputs copied and a CUDA graph launched
AUTOGRAD_NS = 1_200_000  # around compiled training code: saved tensors, the engine, gradients to accumulate, the loss
LAUNCH_NS = 20_000  # at most to launch a kernel, where the GPU is the limit and the trace cannot say
QUEUE_NS = 700  # what the GPU rests between two kernels of its queue
BUSY_LIMIT = 0.8  # of the step: from here on the GPU, not the host, decides


@dataclass(frozen=True)
class Case:
    """How well compiling goes: factors of what the constants and the trace say."""

    longest: float  # of the longest kernel of a group: fused, it may come nearer to the memory's peak
    rest: float  # of the time of the group's other kernels: inputs and arithmetic of their own
    made: float  # kernels that a group becomes, at most as many as before: sizes differ, reductions take two
    made_training: float  # the same in a training step: sums for the gradients of parameters, casts of weights
    gpu: float  # of the GPU's time in all: clocks, and kernels chosen anew
    launch: float  # of what a launch costs now
    fixed: float  # of the fixed times above: hosts differ
    is_overlapped: bool  # whether the host's work goes on beside a CUDA graph's


BEST = Case(0.6, 0.0, made=1, made_training=1, gpu=0.95, launch=0.7, fixed=0.6, is_overlapped=True)
LIKELY = Case(0.9, 0.1, made=1.5, made_training=3, gpu=1.0, launch=1.0, fixed=1.0, is_overlapped=True)
WORST = Case(1.0, 0.5, made=3, made_training=inf, gpu=1.05, launch=1.45, fixed=1.6, is_overlapped=False)
NONE_BELOW, LARGE_FROM = 1.1, 1.5  # gain classes
WIDE_RATIO = 4.0  # a range whose high end is so many times its low end leaves doubt
HOST_FIRST = 0.2  # a share of the step in waiting for data, in synchronisation or in copies, mended before all else
HEAVY_LIMIT = 0.6  # a share of the step in heavy kernels from which tuning them is what is left
ROOF_PCT = 70.0  # GEMMs that reach less of their roof than this may be tuned
MISALIGNED_PCT = 5.0  # of all GEMM time: less is not worth a condition
MISALIGNED = {"float16": 8, "bfloat16": 8, "float32": 4}  # elements that rows of a matrix should be a multiple of
TINY_STEP_NS = 4 * GRAPH_CALL_NS  # below it what compiled code costs to enter is a good part of the step
