#!/usr/bin/env python3
"""Shaped like a job of a trainer library: deep stacks, callbacks, accumulated gradients, checkpoints, evaluation.

Between the script and an operator stand some forty frames: the loop, the accelerator's wrappers, decorators of
the model's forward, layers in layers.
"""

import contextlib
import functools
import io
import math

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

import joblib


class Sentences(Dataset):
    def __init__(self, count, vocabulary):
        self.count, self.vocabulary = count, vocabulary

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(1, self.vocabulary, (8 + index % 9,), generator=generator)
        return {"input_ids": tokens, "label": int(tokens.sum()) % 2}


class Collator:
    """Pads a batch."""

    def __call__(self, features):
        longest = max(len(f["input_ids"]) for f in features)
        ids = torch.zeros(len(features), longest, dtype=torch.long)
        mask = torch.zeros(len(features), longest, dtype=torch.bool)
        for row, feature in enumerate(features):
            n = len(feature["input_ids"])
            ids[row, :n] = feature["input_ids"]
            mask[row, :n] = True
        return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([f["label"] for f in features])}


def checked(function):
    """As libraries wrap each forward: to check arguments, to replace return types."""
    @functools.wraps(function)
    def wrapper(self, *args, **kwargs):
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        return function(self, *args, **kwargs)
    return wrapper


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).permute(0, 2, 1, 3)

    @checked
    def forward(self, hidden, mask=None):
        query, key, value = self.split(self.query(hidden)), self.split(self.key(hidden)), self.split(self.value(hidden))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores + mask
        mixed = torch.matmul(nn.functional.softmax(scores, dim=-1), value)
        return mixed.permute(0, 2, 1, 3).reshape(hidden.shape)


class Output(nn.Module):
    def __init__(self, before, width):
        super().__init__()
        self.dense, self.norm, self.dropout = nn.Linear(before, width), nn.LayerNorm(width), nn.Dropout(0.1)

    def forward(self, x, residual):
        return self.norm(self.dropout(self.dense(x)) + residual)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.self, self.output = SelfAttention(width, heads), Output(width, width)

    @checked
    def forward(self, hidden, mask=None):
        return self.output(self.self(hidden, mask=mask), hidden)


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = Attention(width, heads)
        self.intermediate, self.output = nn.Linear(width, 4 * width), Output(4 * width, width)

    def feed_forward(self, x):
        return self.output(nn.functional.gelu(self.intermediate(x)), x)

    def forward(self, hidden, mask=None):
        return self.feed_forward(self.attention(hidden, mask=mask))


class Encoder(nn.Module):
    def __init__(self, width, heads, depth):
        super().__init__()
        self.layer = nn.ModuleList(Layer(width, heads) for _ in range(depth))

    @checked
    def forward(self, hidden, mask=None):
        for layer in self.layer:
            hidden = layer(hidden, mask=mask)
        return hidden


class Classifier(nn.Module):
    def __init__(self, vocabulary, width, heads, depth):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width, padding_idx=0), nn.Embedding(64, width)
        self.encoder = Encoder(width, heads, depth)
        self.pooler, self.classifier = nn.Linear(width, width), nn.Linear(width, 2)

    @checked
    def forward(self, input_ids, attention_mask=None, labels=None):
        hidden = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        mask = (1.0 - attention_mask[:, None, None, :].to(hidden.dtype)) * torch.finfo(hidden.dtype).min
        pooled = torch.tanh(self.pooler(self.encoder(hidden, mask=mask)[:, 0]))
        logits = self.classifier(pooled)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class Callback:
    def __init__(self):
        self.losses = []

    def on_step_end(self, trainer, loss):
        self.losses.append(loss.item())
        if trainer.steps % 10 == 0:
            trainer.save()
        if trainer.evaluates and trainer.steps % trainer.evaluates == 0:
            trainer.evaluate()


class Accelerator:
    """What stands between a trainer and autograd."""

    def __init__(self, accumulate):
        self.accumulate, self.seen = accumulate, 0

    @contextlib.contextmanager
    def accumulating(self, model):
        self.seen += 1
        yield self.seen % self.accumulate == 0

    def backward(self, loss, **kwargs):
        (loss / self.accumulate).backward(**kwargs)

    def clip(self, parameters, most):
        return nn.utils.clip_grad_norm_(parameters, most)


class Trainer:
    def __init__(self, model, data, callbacks, batch, evaluates):
        self.model, self.callbacks, self.steps = model, callbacks, 0
        self.evaluates, self.evaluated, self.updates = evaluates, 0, 0
        self.accelerator = Accelerator(2)
        self.held_out = DataLoader(Sentences(32, data.vocabulary), batch_size=batch, collate_fn=Collator())
        self.loader = DataLoader(data, batch_size=batch, collate_fn=Collator(), shuffle=True)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / 10))

    def save(self):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, io.BytesIO())

    def compute_loss(self, inputs):
        return self.model(**inputs)["loss"]

    def training_step(self, inputs):
        self.model.train()
        loss = self.compute_loss(inputs)
        self.accelerator.backward(loss)
        return loss.detach()

    @torch.no_grad()
    def evaluate(self):
        """Four batches, forward alone."""
        self.model.eval()
        for inputs in self.held_out:
            self.compute_loss(inputs)
            self.evaluated += 1

    def inner_loop(self, passes):
        while self.steps < passes:
            for inputs in self.loader:
                with self.accelerator.accumulating(self.model) as last:
                    loss = self.training_step(inputs)
                if last:
                    self.accelerator.clip(self.model.parameters(), 1.0)
                    self.optimizer.step()
                    self.updates += 1
                    self.schedule.step()
                    self.model.zero_grad()
                self.steps += 1
                for callback in self.callbacks:
                    callback.on_step_end(self, loss)
                if self.steps >= passes:
                    break

    def train(self, passes):
        return self.inner_loop(passes)


def main():
    parser = joblib.options(__doc__.splitlines()[0], steps=40, warmup=4)
    parser.add_argument("--evaluate", type=int, default=0, help="evaluate after so many passes; 0 is never")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(23)
    callback = Callback()
    trainer = Trainer(Classifier(500, 64, 4, 3), Sentences(256, 500), [callback], 8, args.evaluate)
    trainer.train(args.warmup)
    joblib.ready(args)
    evaluated, updates = trainer.evaluated, trainer.updates
    trainer.train(args.warmup + args.steps)
    joblib.tell(steps=trainer.steps - args.warmup, losses=len(callback.losses), train=trainer.updates - updates,
                evaluate=trainer.evaluated - evaluated)


if __name__ == "__main__":
    main()
