"""Pairs of eager and compiled runs of many programs, for calibrate.py; needs torch, torchvision and a GPU.

    python benchmarks/record_pairs.py OUT                     # all programs
    python benchmarks/record_pairs.py OUT bert unet           # some
    python benchmarks/record_pairs.py OUT --compile-only      # fill the compiler's caches, measure nothing

For each program and mode OUT gets NAME__MODE.ref.json: the un-profiled step (median of blocks run back to back, and
synchronised) and the kernels and GPU busy time of profiled ones; for eager runs the trace, too. A program that fails is
said and the rest goes on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.profiler import ProfilerActivity, profile, schedule

Step = Callable[[], object]
Program = Callable[[Callable], Step]
MODES = {"eager": None, "default": "default", "reduce": "reduce-overhead"}
BLOCKS, BLOCK_S, SYNCED_STEPS, WARM_UP, ACTIVE = 9, 0.06, 15, 4, 3
GPU = "cuda"


# Programs: each takes what compiles a module or function, and returns one step ---------------------------------------


def inference(model: nn.Module, compiled: Callable, *inputs: Tensor) -> Step:
    """A step that calls the model without gradients."""
    call = compiled(model.to(GPU).eval())

    def step() -> object:
        with torch.no_grad():
            return call(*inputs)

    return step


def training(
    model: nn.Module, compiled: Callable, inputs: tuple[Tensor, ...], loss: Callable, optimizer: Callable,
    bf16: bool = False,
) -> Step:  # fmt: skip
    """A step with backward pass and eager optimizer."""
    model = model.to(GPU)
    optimizer = optimizer(model.parameters())
    call = compiled(model)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(GPU, torch.bfloat16, enabled=bf16):
            value = loss(call(*inputs))
        value.backward()
        optimizer.step()

    return step


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-4)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-3, momentum=0.9)


def mean_square(out: Tensor) -> Tensor:
    return out.float().pow(2).mean()


def images(count: int, side: int = 224, **kind) -> Tensor:
    return torch.randn(count, 3, side, side, device=GPU, **kind)


class RMSNorm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


def turned(x: Tensor) -> Tensor:
    """Rotary embedding's second half, negated, before the first."""
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), -1)


class LlamaBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = RMSNorm(width), RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts[0], parts[1], parts[2]
        q, k = (
            t * cos + torch.cat((-t[..., t.shape[-1] // 2 :], t[..., : t.shape[-1] // 2]), -1) * sin for t in (q, k)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        hidden = self.between(x)
        return x + self.down(F.silu(self.gate(hidden)) * self.up(hidden))


class Llama(nn.Module):
    def __init__(self, width: int, heads: int, layers: int, length: int, words: int = 8192) -> None:
        super().__init__()
        self.embedding, self.norm = nn.Embedding(words, width), RMSNorm(width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        angle = torch.outer(torch.arange(length), 1e4 ** -torch.linspace(0, 1, width // heads // 2)).repeat(1, 2)
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        cos, sin = (t[: tokens.shape[1]].to(x.dtype) for t in (self.cos, self.sin))
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))


class UNet(nn.Module):
    """Down and up again with skip connections, group norm and SiLU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        small, large = [width, width, 2 * width], [width, 2 * width, 4 * width]
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList(self.block(a, b) for a, b in zip(small, large, strict=True))
        self.up = nn.ModuleList(self.block(2 * b, a) for a, b in zip(small[::-1], large[::-1], strict=True))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    @staticmethod
    def block(a: int, b: int) -> nn.Sequential:
        return nn.Sequential(
            nn.GroupNorm(8, a), nn.SiLU(), nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(),
            nn.Conv2d(b, b, 3, padding=1),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        x, kept = self.first(x), []
        for layer in self.down:
            x = layer(x)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        for layer in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = layer(torch.cat((x, kept.pop()), 1))
        return self.last(x)


class Recommender(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(20_000, 64, mode="sum") for _ in range(16))
        self.bottom = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(64 + 136, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1))
        at = torch.tril_indices(17, 17, -1)
        self.register_buffer("rows", at[0])
        self.register_buffer("columns", at[1])

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        low = self.bottom(dense)
        all_parts = torch.stack([low, *(table(sparse[:, i]) for i, table in enumerate(self.tables))], 1)
        products = (all_parts @ all_parts.transpose(1, 2))[:, self.rows, self.columns]
        return self.top(torch.cat((low, products), 1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.rnn, self.head = (
            nn.Embedding(8000, 512),
            nn.LSTM(512, 512, 2, batch_first=True),
            nn.Linear(512, 8000),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.rnn(self.embedding(tokens))[0])


class Chain(nn.Module):
    """Small linear layers; `waits` of them look at a value on the host."""

    def __init__(self, layers: int, width: int, waits: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.every = layers // waits if waits else layers + 1

    def forward(self, x: Tensor) -> Tensor:
        for i, layer in enumerate(self.layers):
            x = torch.tanh(F.gelu(layer(x)) + x)
            if i % self.every == self.every - 1:
                x = x * (1 / (1 + x.abs().max().item()))
        return x


class Masked(nn.Module):
    """Rows above a threshold go through an expert of their own: shapes depend on data."""

    def __init__(self) -> None:
        super().__init__()
        self.gate, self.a, self.b = nn.Linear(512, 1), nn.Linear(512, 512), nn.Linear(512, 512)

    def forward(self, x: Tensor) -> Tensor:
        chosen = self.gate(x).squeeze(-1) > 0
        out = torch.zeros_like(x)
        out[chosen] = F.gelu(self.a(x[chosen]))
        out[~chosen] = F.gelu(self.b(x[~chosen]))
        return F.layer_norm(out + x, (512,))


def policy() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 8), nn.Softmax(-1)
    )


def wave(u: Tensor, v: Tensor) -> Tensor:
    """A step of a wave equation on a grid, in plain operators."""
    around = torch.roll(u, 1, 0) + torch.roll(u, -1, 0) + torch.roll(u, 1, 1) + torch.roll(u, -1, 1) - 4 * u
    new = 2 * u - v + 0.1 * around - 0.01 * torch.sin(u) * u.abs().sqrt()
    return torch.clamp(new * torch.exp(-0.001 * u * u), -10, 10)


def bert(compiled: Callable) -> Step:
    from transformers import BertConfig, BertModel

    return inference(BertModel(BertConfig()).half(), compiled, torch.randint(0, 30000, (4, 128), device=GPU))


def bert_train(compiled: Callable) -> Step:
    from transformers import BertConfig, BertForSequenceClassification

    model = BertForSequenceClassification(BertConfig(num_hidden_layers=6, num_labels=4))
    tokens, goal = torch.randint(0, 30000, (32, 128), device=GPU), torch.randint(0, 4, (32,), device=GPU)
    return training(model, compiled, (tokens,), lambda out: F.cross_entropy(out.logits.float(), goal), adamw, bf16=True)


def vision(name: str, batch: int, train: bool = False, channels_last: bool = False, half: bool = False) -> Program:
    def program(compiled: Callable) -> Step:
        import torchvision

        layout = torch.channels_last if channels_last else torch.contiguous_format
        model = getattr(torchvision.models, name)().to(memory_format=layout)
        x = images(batch, dtype=torch.half if half and not train else torch.float32).contiguous(memory_format=layout)
        if not train:
            return inference(model.half() if half else model, compiled, x)
        goal = torch.randint(0, 1000, (batch,), device=GPU)
        return training(model, compiled, (x,), lambda out: F.cross_entropy(out.float(), goal), sgd, bf16=half)

    return program


def tokens(batch: int, length: int, words: int = 8192) -> Tensor:
    return torch.randint(0, words, (batch, length), device=GPU)


def next_word(goal: Tensor) -> Callable:
    return lambda out: F.cross_entropy(out.float().flatten(0, 1), goal.flatten())


PROGRAMS: dict[str, Program] = {
    "bert": bert,
    "resnet50": vision("resnet50", 64, train=True, channels_last=True, half=True),
    "llamadecode": lambda c: inference(Llama(1024, 16, 12, 64).bfloat16(), c, tokens(4, 1)),
    "llamaprefill": lambda c: inference(Llama(2048, 16, 6, 1024).bfloat16(), c, tokens(4, 1024)),
    "llamatrain": lambda c: training(
        Llama(768, 12, 6, 512), c, (x := tokens(8, 512),), next_word(x), adamw, bf16=True
    ),
    "mlptrain": lambda c: training(
        nn.Sequential(*(m for _ in range(6) for m in (nn.Linear(512, 512), nn.LayerNorm(512), nn.GELU()))),
        c, (torch.randn(256, 512, device=GPU),), mean_square, adamw,
    ),
    "policy": lambda c: inference(policy(), c, torch.randn(16, 64, device=GPU)),
    "wave": lambda c: (lambda f, u, v: lambda: f(u, v))(
        c(wave), torch.randn(6144, 6144, device=GPU), torch.randn(6144, 6144, device=GPU)
    ),
    "wavesmall": lambda c: (lambda f, u, v: lambda: f(u, v))(
        c(wave), torch.randn(768, 768, device=GPU), torch.randn(768, 768, device=GPU)
    ),
    "unet": lambda c: inference(UNet(64).half(), c, images(4, 128, dtype=torch.half)),
    "recommender": lambda c: training(
        Recommender(), c, (torch.randn(2048, 13, device=GPU), torch.randint(0, 20_000, (2048, 16, 4), device=GPU)),
        mean_square, sgd,
    ),
    "lstm": lambda c: training(Recurrent(), c, (x := tokens(32, 64, 8000),), next_word(x), adamw),
    "chain1": lambda c: inference(Chain(12, 256, 1), c, torch.randn(64, 256, device=GPU)),
    "chain0": lambda c: inference(Chain(12, 256, 0), c, torch.randn(64, 256, device=GPU)),
    "chain4": lambda c: inference(Chain(16, 1024, 4), c, torch.randn(2048, 1024, device=GPU)),
    "masked": lambda c: inference(Masked(), c, torch.randn(4096, 512, device=GPU)),
    "mobilenet": vision("mobilenet_v3_small", 1),
    "resnet18": vision("resnet18", 32, half=True),
    "berttrain": bert_train,
    "vit": vision("vit_b_16", 32, half=True),
    "convnext": vision("convnext_tiny", 32, train=True, half=True),
    "transformer": lambda c: training(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 4), c,
        (torch.randn(16, 64, 256, device=GPU),), mean_square, adamw,
    ),
}  # fmt: skip


# Measuring ----------------------------------------------------------------------------------------------------------


def measure(name: str, mode: str, out: Path) -> None:
    """Warm up, time without the profiler, then profile."""
    step = built(name, mode)
    began = time.monotonic()
    warm_up(step)
    compile_s = time.monotonic() - began
    figures = {
        "name": name, "mode": mode, "torch": torch.__version__, "gpu": torch.cuda.get_device_name(),
        "warm_s": compile_s, "unprofiled": unprofiled(step),
    }  # fmt: skip
    figures["profiled"] = profiled(step, out / f"{name}__{mode}.json.gz" if mode == "eager" else None)
    (out / f"{name}__{mode}.ref.json").write_text(json.dumps(figures), "utf-8")
    print(
        f"{name:<14} {mode:<8} warm {compile_s:6.1f} s  step {figures['unprofiled']['wall_ms_per_step']:8.3f} ms "
        f"synced {figures['unprofiled']['median_event_ms']:8.3f}  kernels {figures['profiled']['kernels']:7.1f} "
        f"busy {figures['profiled']['busy_ms']:8.3f} ms",
        flush=True,
    )


def built(name: str, mode: str) -> Step:
    torch._dynamo.reset()
    torch.manual_seed(0)
    torch.cuda.empty_cache()
    asked = MODES[mode]
    return PROGRAMS[name](lambda what: torch.compile(what, mode=asked) if asked else what)


def warm_up(step: Step) -> None:
    for _ in range(WARM_UP):
        step()
    torch.cuda.synchronize()


def unprofiled(step: Step) -> dict[str, object]:
    began = time.perf_counter()
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    count = max(3, int(BLOCK_S / ((time.perf_counter() - began) / 3)))
    blocks = []
    for _ in range(BLOCKS):
        began = time.perf_counter()
        for _ in range(count):
            step()
        torch.cuda.synchronize()
        blocks.append(1e3 * (time.perf_counter() - began) / count)
    synced = []
    for _ in range(SYNCED_STEPS):
        began = time.perf_counter()
        step()
        torch.cuda.synchronize()
        synced.append(1e3 * (time.perf_counter() - began))
    return {
        "wall_ms_per_step": statistics.median(blocks), "blocks_ms": blocks, "median_event_ms": statistics.median(synced)
    }  # fmt: skip


def profiled(step: Step, path: Path | None) -> dict[str, float]:
    """Kernels and GPU busy time of a step; the trace goes to `path`."""
    plan = schedule(wait=1, warmup=2, active=ACTIVE, repeat=1)
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=both, schedule=plan, record_shapes=path is not None) as recorded:
        for _ in range(3 + ACTIVE):
            step()
            torch.cuda.synchronize()  # else work of the warm-up runs on inside of what is recorded
            recorded.step()
        torch.cuda.synchronize()
    if path:
        raw = path.with_suffix("")
        recorded.export_chrome_trace(str(raw))
        with raw.open("rb") as source, gzip.open(path, "wb", 6) as target:
            shutil.copyfileobj(source, target)
        raw.unlink()
    spans = sorted(
        (e.time_range.start, e.time_range.end) for e in recorded.events()
        if str(e.device_type).endswith("CUDA") and not e.name.startswith("ProfilerStep") and not e.is_user_annotation
    )  # fmt: skip
    busy, reached = 0.0, float("-inf")
    for start, end in spans:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return {"kernels": len(spans) / ACTIVE, "busy_ms": busy / ACTIVE / 1e3}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--share", default="1/1", help="2/4: the second of four parts of the programs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no program after so long")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high")
    part, parts = map(int, asked.share.split("/"))
    began, failed = time.monotonic(), 0
    for name in (asked.programs or list(PROGRAMS))[part - 1 :: parts]:
        if time.monotonic() - began > asked.seconds:
            print(f"left out: {name}", flush=True)
            continue
        for mode in asked.modes.split(","):
            try:
                if asked.compile_only:
                    warm_up(built(name, mode))
                else:
                    measure(name, mode, asked.out)
            except Exception:  # one program must not cost the others
                failed += 1
                print(f"FAILED {name} {mode}", traceback.format_exc(limit=-3), flush=True)
    print(f"{time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
