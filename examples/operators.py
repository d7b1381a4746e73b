"""Where torch.compile helps and where it does not: scattered operators, a matrix product, Adam on many parameters.

    for what in scattered gemm adam; do
        traceq capture --compare eager,default,reduce-overhead,max-autotune --compile-optimizer \
            --label $what examples/operators.py $what
    done

Scattered operators become one kernel, a matrix product stays what it is, and the many small kernels of Adam's step
become few.
"""

import argparse

import torch
from looping import device, measured, scaled
from torch import nn


class Scattered(nn.Module):
    """Operators that each read and write all of their input."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size))
        self.bias = nn.Parameter(torch.randn(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.gelu(x) * self.weight + self.bias
        return torch.tanh(nn.functional.layer_norm(hidden, hidden.shape[-1:]))


class Product(nn.Module):
    """One matrix product."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["scattered", "gemm", "adam"])
    parser.add_argument("--steps", type=int, default=scaled(900))
    parser.add_argument("--size", type=int, default=scaled(4096))
    parser.add_argument("--mode", help="compile by hand: default, reduce-overhead, max-autotune")
    args = parser.parse_args()
    torch.manual_seed(0)
    if args.what == "adam":
        train(args)
        return
    model = (Scattered if args.what == "scattered" else Product)(args.size).to(device(), torch.bfloat16)
    if args.mode:
        model.compile(mode=args.mode)
    x = torch.randn(args.size, args.size, device=device(), dtype=torch.bfloat16)
    with torch.no_grad():
        for _ in measured(range(args.steps)):
            out = model(x)
    print(f"mean {out.float().mean().item():.4f}")


def train(args: argparse.Namespace) -> None:
    """Adam on forty small layers: what the optimizer does outweighs the model."""
    width = args.size // 16
    model = nn.Sequential(*(nn.Linear(width, width) for _ in range(40))).to(device())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    if args.mode:
        model = torch.compile(model, mode=args.mode)
        optimizer.step = torch.compile(optimizer.step, mode=args.mode)
    x = torch.randn(16, width, device=device())
    for _ in measured(range(args.steps)):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
