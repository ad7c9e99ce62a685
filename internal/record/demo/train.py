"""Trains a small language model on text that it prepares in the training loop: the job of ebpfprof demo."""

import random
import sys
import time

import torch
from torch import nn

LETTERS = "abcdefghijklmnopqrstuvwxyz ,.;:'!?-"
LENGTH = 64
BATCH = 4
DOCUMENT = 60000


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Model(nn.Module):
    def __init__(self, width=32, depth=2):
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), width)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, len(LETTERS))

    def forward(self, tokens):
        return self.head(self.blocks(self.embedding(tokens)))


def encode(text):
    """Numbers the letters of a text."""
    return [LETTERS.index(letter) for letter in text if letter in LETTERS]


def prepare(documents):
    """One batch. Each document is encoded whole though its first letters are all that is used: what makes this job slow."""
    return torch.tensor([encode(document)[:LENGTH + 1] for document in documents])


def main():
    limit = time.monotonic() + float(sys.argv[1])
    random.seed(1)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    corpus = ["".join(random.choices(LETTERS, k=DOCUMENT)) for _ in range(16)]
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    step = 0
    while time.monotonic() < limit:
        batch = prepare(random.sample(corpus, BATCH))
        optimizer.zero_grad()
        scores = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        step += 1
        if step == 20:  # warm
            print("ready", flush=True)


main()
