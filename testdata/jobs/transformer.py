#!/usr/bin/env python3
"""A small GPT: one training step of a decoder with causal attention."""

import torch
from torch import nn

import joblib


class Attention(nn.Module):
    """Causal self-attention, written out: the fused form is only in PyTorch 2."""

    def __init__(self, width, heads, length):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.register_buffer("mask", torch.tril(torch.ones(length, length, dtype=torch.bool)))

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1))
        score = query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5
        score = score.masked_fill(~self.mask[:length, :length], float("-inf"))
        mixed = (score.softmax(dim=-1) @ value).transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed)


class Block(nn.Module):
    def __init__(self, width, heads, length):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, length)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    def __init__(self, vocabulary, width, heads, depth, length):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, heads, length) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.token(tokens) + self.position(torch.arange(tokens.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def main():
    parser = joblib.options(__doc__.splitlines()[0], steps=20, warmup=3)
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--lists", action="store_true",
                        help="each step also adds to a list of three tensors")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(21)

    vocabulary = 256
    model = GPT(vocabulary, args.width, 4, args.depth, args.length)
    text = torch.randint(0, vocabulary, (args.batch, args.length + 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=False)

    numbers = [torch.ones(7, dtype=torch.float64) for _ in range(3)]

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autograd.profiler.record_function("forward"):
            scores = model(text[:, :-1])
            loss = nn.functional.cross_entropy(
                scores.reshape(-1, vocabulary), text[:, 1:].reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if args.lists:
            torch._foreach_add_(numbers, 1.0)
        return loss.detach()

    joblib.train(args, model, step, scopes={
        "forward": 1,
        "Optimizer.step#AdamW.step": 1,
        "Optimizer.zero_grad#AdamW.zero_grad": 1,
    })


if __name__ == "__main__":
    main()
