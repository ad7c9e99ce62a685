"""Networks shaped like those of the paper on profile-guided memory, small enough for two cores.

models.py MODEL train|infer STEPS: alexnet, googlenet, resnet50, inception_resnet, seq2seq, seq2seq_varying, gpt.
Prints a hash of everything computed, so that two runs can be compared bit by bit. Where a library of ours is
preloaded that wants to know, it is told when a step begins.
"""
import ctypes
import hashlib
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class ConvBlock(nn.Module):
    def __init__(self, i, o, k=3, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, stride, k // 2, bias=False)
        self.norm = nn.BatchNorm2d(o)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class AlexNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 24, 5, 2, 2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 96, 3, 1, 1), nn.ReLU(), nn.Conv2d(96, 64, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Sequential(nn.Dropout(), nn.Linear(64 * 16, 256), nn.ReLU(), nn.Dropout(), nn.Linear(256, 10))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class Inception(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.a = ConvBlock(i, o, 1)
        self.b = nn.Sequential(ConvBlock(i, o, 1), ConvBlock(o, o, 3))
        self.c = nn.Sequential(ConvBlock(i, o, 1), ConvBlock(o, o, 5))
        self.d = nn.Sequential(nn.MaxPool2d(3, 1, 1), ConvBlock(i, o, 1))

    def forward(self, x):
        return torch.cat([self.a(x), self.b(x), self.c(x), self.d(x)], 1)


class InceptionResidual(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.branches = Inception(i, o)
        self.join = nn.Conv2d(4 * o, i, 1)

    def forward(self, x):
        return F.relu(x + 0.2 * self.join(self.branches(x)))


class Bottleneck(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.path = nn.Sequential(ConvBlock(i, o, 1), ConvBlock(o, o, 3, stride), nn.Conv2d(o, 4 * o, 1, bias=False), nn.BatchNorm2d(4 * o))
        self.short = nn.Conv2d(i, 4 * o, 1, stride, bias=False) if stride != 1 or i != 4 * o else nn.Identity()

    def forward(self, x):
        return F.relu(self.path(x) + self.short(x))


def resnet50():
    layers, channels = [ConvBlock(3, 16, 3)], 16
    for width, blocks, stride in ((8, 3, 1), (16, 4, 2), (32, 6, 2), (64, 3, 2)):
        for n in range(blocks):
            layers.append(Bottleneck(channels, width, stride if n == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def googlenet():
    return nn.Sequential(ConvBlock(3, 16), nn.MaxPool2d(2), Inception(16, 12), Inception(48, 16), nn.MaxPool2d(2), Inception(64, 20),
                         Inception(80, 24), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 10))


def inception_resnet():
    return nn.Sequential(ConvBlock(3, 32), nn.MaxPool2d(2), *[InceptionResidual(32, 8) for _ in range(4)], ConvBlock(32, 64, 3, 2),
                         *[InceptionResidual(64, 12) for _ in range(4)], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


class Seq2Seq(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.encoder, self.decoder = nn.LSTMCell(64, 96), nn.LSTMCell(64, 96)
        self.out = nn.Linear(96, 100)

    def forward(self, tokens):
        state = None
        for t in range(tokens.shape[1]):
            state = self.encoder(self.embed(tokens[:, t]), state)
        outputs = []
        for t in range(tokens.shape[1]):
            state = self.decoder(self.embed(tokens[:, t]), state)
            outputs.append(self.out(state[0]))
        return torch.stack(outputs, 1)


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(100, 96), nn.Embedding(64, 96)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(96, 4, 384, 0.0, batch_first=True, norm_first=True) for _ in range(4))
        self.out = nn.Linear(96, 100)

    def forward(self, tokens):
        n = tokens.shape[1]
        mask = torch.full((n, n), float("-inf")).triu(1)
        x = self.embed(tokens) + self.place(torch.arange(n))
        for block in self.blocks:
            x = block(x, src_mask=mask)
        return self.out(x)


IMAGES = {"alexnet": AlexNet, "googlenet": googlenet, "resnet50": resnet50, "inception_resnet": inception_resnet}
TOKENS = {"seq2seq": Seq2Seq, "seq2seq_varying": Seq2Seq, "gpt": GPT}


def main():
    name, mode, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
    batch = int(sys.argv[4]) if len(sys.argv) > 4 else 8
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True, warn_only=True)
    model = (IMAGES.get(name) or TOKENS[name])()
    library = ctypes.CDLL(None)
    begin, pause = getattr(library, "replay_step", None), getattr(library, "replay_pause", None)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    lengths = [12, 12, 12, 14, 9, 16, 12, 11, 16, 15, 10, 16, 13, 12]
    digest = hashlib.sha256()
    model.train(mode == "train")
    for step in range(steps):
        length = lengths[step % len(lengths)] if name == "seq2seq_varying" else 12
        x = torch.randn(batch, 3, 64, 64) if name in IMAGES else torch.randint(0, 100, (batch, length))
        y = torch.randint(0, 10, (batch,)) if name in IMAGES else x
        if begin:
            begin()
        if mode == "train":
            loss = F.cross_entropy(model(x).flatten(0, -2), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            with torch.no_grad():
                loss = model(x).sum()
        number = loss.item()
        del loss
        if pause:
            pause()
        digest.update(repr(number).encode())
    for p in model.parameters():
        digest.update(p.detach().numpy().tobytes())
    print(digest.hexdigest())


main()
