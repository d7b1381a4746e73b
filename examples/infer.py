"""An inference loop: a small convolutional network on one batch after the other.

traceq capture examples/infer.py
traceq capture --compare eager,default,reduce-overhead,max-autotune --check-outputs --submodules examples/infer.py
"""

import argparse

import torch
from looping import device, measured, scaled
from torch import nn


def block(channels: int, out: int) -> nn.Sequential:
    """Two convolutions with normalisation, at half the size."""
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, padding=1, bias=False),
        nn.BatchNorm2d(out),
        nn.ReLU(),
        nn.Conv2d(out, out, 3, padding=1, stride=2, bias=False),
        nn.BatchNorm2d(out),
        nn.ReLU(),
    )


class Model(nn.Module):
    """Four blocks and a head."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = block(3, width)
        self.second = block(width, 2 * width)
        self.third = block(2 * width, 4 * width)
        self.head = nn.Linear(4 * width, 100)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.third(self.second(self.first(images)))
        return self.head(features.mean((2, 3)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=scaled(900))
    parser.add_argument("--width", type=int, default=scaled(64))
    parser.add_argument("--batch", type=int, default=scaled(16))
    parser.add_argument("--mode", help="compile the model by hand: default, reduce-overhead, max-autotune")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Model(args.width).to(device()).eval()
    if args.mode:
        model.compile(mode=args.mode)
    images = torch.randn(args.batch, 3, 128, 128, device=device())
    with torch.no_grad():
        for _ in measured(range(args.steps)):
            out = model(images)
    print(f"sum {out.sum().item():.3f}")


if __name__ == "__main__":
    main()
