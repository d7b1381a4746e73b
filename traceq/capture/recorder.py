"""What happens in the child beside the script: count its steps, time them, profile a few, save it all."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from traceq.capture import compiler, compiling, course, expect, imports, nsys, record
from traceq.capture.early import Early
from traceq.capture.faults import reason, told
from traceq.capture.outputs import Outputs
from traceq.capture.profiling import Profile, ScriptsOwn
from traceq.capture.record import NOT_WRITTEN, Record, Spec
from traceq.capture.steps import Steps

TOO_FEW = "too few steps came to be profiled (--no-timing profiles the first ones)"


class Recorder:
    """The one recorder of a process; it does nothing until the script has imported torch."""

    def __init__(self, spec: Spec, into: Record) -> None:
        self.spec = spec
        self.record = into
        self._pid = os.getpid()
        self._torch: Any = None
        self._early: Early | None = None
        self._own: ScriptsOwn | None = None
        self._profile: Profile | nsys.Range | None = None
        self._outputs: Outputs | None = None
        self._course: Iterator[int] | None = None
        self._steps = Steps(spec.step, self._act, self._found, self._restart)
        self._is_finished = False
        self.was_recording = False
        self.has_tracer = True
        self.is_complete = False  # the steps that count have been timed and profiled

    def begin(self) -> None:
        """The script has imported torch. Never raises: the script comes first."""
        with told(self.record.note, "nothing could be recorded"):
            self._begin()

    def _begin(self) -> None:
        torch = self._torch = sys.modules["torch"]
        self.record.torch_version = str(torch.__version__)
        if self.spec.seed is not None:
            torch.manual_seed(self.spec.seed)
        compiler.watch(self.record.note)
        if self.spec.keep_outputs:
            self._outputs = Outputs(torch)
        if self.spec.compile_optimizer and self.spec.mode != "eager":
            compiling.compile_optimizers(torch, self.spec.mode)
        self._own = ScriptsOwn(self._give_way, self.record.note)
        self._own.watch(torch)
        self._steps.begin(torch)
        imports.when_imported("torch._dynamo.trace_rules", self._hide)
        self._restart()
        if self.spec.profiler == "nsys":
            return
        if not torch.profiler.kineto_available():
            self._lacks_tracer()
        else:
            self._early = Early(torch, self.spec, self.record.note)
            self._early.begin()

    def _lacks_tracer(self) -> None:
        """Say at once that there will be no trace, not after hours."""
        self.has_tracer = False
        self.record.note(record.NO_TRACER)
        if not self.spec.is_quiet:
            os.write(2, f"traceq: {record.NO_TRACER}\n".encode())

    def _hide(self) -> None:
        """Have Dynamo pass over what runs here between two steps: it would compile it."""
        rules = sys.modules["torch._dynamo.trace_rules"]
        for name in ("recorder", "course", "early", "profiling", "nsys", "faults"):
            rules.add(f"traceq.capture.{name}")

    def forget(self) -> None:
        """In a forked child: record nothing."""
        self.was_recording = self._early is not None or self._profile is not None
        self._is_finished = True
        self._steps.due = 1 << 62
        if self._early:
            self._early.forget()

    def finish(self) -> None:
        """The script has ended, or is about to: save what there is. Never raises."""
        if self._is_finished or os.getpid() != self._pid:
            return
        self._is_finished = True
        with told(self.record.note, NOT_WRITTEN):
            self._save()
        try:
            record.write(self.spec.record, self.record)
        except OSError as error:  # the one thing that the parent cannot tell
            os.write(2, f"traceq: what was recorded is lost: {reason(error)}\n".encode())

    def _save(self) -> None:
        self.record.steps = self._steps.count
        self.record.step_source = self._steps.source if self._steps.count else None
        self._steps.end()
        if self._torch is None:
            self.record.note("the script never imported torch: nothing was recorded")
            return
        if self.record.trace is None:
            self._save_trace()
        if self._own is None or not self._own.is_used:
            self.record.note(self._steps.meaning)
        self._describe()

    def _save_trace(self) -> None:
        assert self._own is not None
        if self._own.is_used and self.spec.profiler == "nsys":
            if self._profile is None:
                self.record.note(record.TWO_PROFILERS)
            return
        if self._own.is_used:
            self.record.own_traces = [path for path in self._own.traces if os.path.exists(path)]
            is_saved = not self.record.own_traces and self._own.export(self.spec.trace)
            if self.record.own_traces or is_saved:
                self.record.note("the script profiles itself: its own trace is taken")
                self.record.trace = os.path.basename(self.spec.trace) if is_saved else None
                return
            self.record.note("the script profiles itself, and left no trace: what ran before that is taken")
        is_whole = self.is_recording_early
        for recording in (self._profile, self._early):
            if recording is not None:
                recording.stop()
                if recording.export(self.spec.trace):
                    self.record.trace = os.path.basename(self.spec.trace)
                    if isinstance(recording, Early) and not is_whole and not self._own.is_used:
                        self.record.note(f"recorded was {recording.extent}: {TOO_FEW}")
                    return

    def _describe(self) -> None:
        triton = sys.modules.get("triton")
        self.record.triton_version = getattr(triton, "__version__", None)
        cuda = self._torch.cuda
        self.record.gpu = cuda.get_device_name() if cuda.is_initialized() else None
        self.record.facts = compiler.facts()
        self.record.outputs = self._outputs.found if self._outputs else None

    def _restart(self) -> None:
        """Count anew: begin the course, unless one is complete. A few calls of a module before training are none."""
        if not self.is_complete:
            if self._profile:
                self._profile.stop()
                self._profile = None
            self.record.timings.clear()
            self.record.notes = [note for note in self.record.notes if note != course.FEW]
            self._course = course.run(self)

    def _found(self, module: Any) -> None:
        """The outermost module is about to be called for the first time."""
        if self._early:
            self._early.expect_steps()
        with told(self.record.note, f"the blocks of {type(module).__name__} are not known"):
            self.record.blocks = [name for name, _ in compiling.blocks(module)]
        # A mode in which it cannot be compiled has failed, and must not pass for one that brings nothing.
        compiling.compile_module(self._torch, module, self.spec.mode, self.spec.block, self.record.note)
        if self._outputs:
            with told(self.record.note, "outputs are not kept"):
                self._outputs.watch(module)

    def _act(self) -> None:
        if self._course is None:
            return
        if self._early:
            self._early.step(self._steps.count)
        wait = None
        with told(self.record.note, "timing and profiling ended early"):
            wait = next(self._course, None)
        if wait is None:
            self._course = None
            self._steps.due = 1 << 62
            if self.is_complete:
                self._steps.end()
        else:
            self._steps.due = self._steps.count + wait

    def _give_way(self) -> None:
        """The script starts a profiler of its own."""
        self._course = None
        if self._early:
            self._early.stop()
        if self._profile:
            self._profile.stop()

    # What the course asks for.

    @property
    def torch(self) -> Any:
        """The script's torch."""
        return self._torch

    @property
    def count(self) -> int:
        """Steps so far."""
        return self._steps.count

    @property
    def is_recording_early(self) -> bool:
        """Whether the script is being recorded from its start on."""
        return self._early is not None and self._early.is_running

    def drop_early(self) -> None:
        """Stop recording from the start: steps are about to be timed."""
        if self._early:
            self._early.stop()

    def expected(self) -> expect.Expected | None:
        """Steps in all that the loops around this one promise; None if they do not."""
        with contextlib.suppress(Exception):  # an estimate is not worth a script
            return expect.expected(self.spec.target if self.spec.kind == "code" else None)
        return None

    def profile(self, wait: int, active: int) -> Profile | nsys.Range | None:
        """Begin the recording of the steps to come; None where there is nothing to record them."""
        if self.spec.profiler == "nsys":
            if self._torch.cuda.is_initialized():  # its marks are CUDA's
                self._profile = nsys.Range(self._torch, wait, active)
        elif self.has_tracer:
            self._profile = Profile(self._torch, self.spec, self.record.note, wait, active)
        return self._profile

    def save_profile(self) -> None:
        """Write the trace now: who knows how the script ends."""
        assert self._profile is not None
        self._profile.stop()
        if self._profile.export(self.spec.trace):
            self.record.trace = os.path.basename(self.spec.trace)
            self._describe()
            record.write(self.spec.record, self.record)
