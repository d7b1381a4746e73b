"""A training loop as people write it: a small transformer, cross entropy, AdamW.

    traceq capture examples/train.py
    traceq capture --compare eager,default,reduce-overhead,max-autotune --compile-optimizer examples/train.py

It knows nothing of traceq. At its end it says what a step took by its own clock.
"""

import argparse

import torch
from looping import device, measured, scaled
from torch import nn


class Model(nn.Module):
    """Token embedding, encoder layers, head."""

    def __init__(self, words: int, width: int, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=scaled(900))
    parser.add_argument("--width", type=int, default=scaled(512))
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--batch", type=int, default=scaled(16))
    parser.add_argument("--mode", help="compile by hand: default, reduce-overhead, max-autotune")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    words, length = 8192, 128
    model = Model(words, args.width, args.layers).to(device())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    if args.mode:
        model.compile(mode=args.mode)
        optimizer.step = torch.compile(optimizer.step, mode=args.mode)
    tokens = torch.randint(0, words, (args.batch, length), device=device())
    goal = torch.randint(0, words, (args.batch * length,), device=device())
    for _ in measured(range(args.steps)):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), goal)
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
