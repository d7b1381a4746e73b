"""Every constant of the verdicts, named and in one place; docs/verdict.md says where each comes from."""

from __future__ import annotations

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
