#!/usr/bin/env python3
"""A network of the shape of ResNet-50, on small pictures, one training step."""

import torch
from torch import nn

import joblib


class Bottleneck(nn.Module):
    def __init__(self, inner, outer, middle, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inner, middle, 1, bias=False), nn.BatchNorm2d(middle), nn.ReLU(inplace=True),
            nn.Conv2d(middle, middle, 3, stride, 1, bias=False), nn.BatchNorm2d(middle),
            nn.ReLU(inplace=True),
            nn.Conv2d(middle, outer, 1, bias=False), nn.BatchNorm2d(outer))
        self.shortcut = nn.Identity()
        if stride != 1 or inner != outer:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet50(classes):
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True),
              nn.MaxPool2d(3, 2, 1)]
    inner = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        middle = 64 << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            layers.append(Bottleneck(inner, 4 * middle, middle, stride))
            inner = 4 * middle
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inner, classes)]
    return nn.Sequential(*layers)


def main():
    parser = joblib.options(__doc__.splitlines()[0], steps=5, warmup=1)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--pixels", type=int, default=64, help="side of a picture")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(22)

    model = resnet50(classes=100)
    pictures = torch.randn(args.batch, 3, args.pixels, args.pixels)
    labels = torch.randint(0, 100, (args.batch,))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9, foreach=False)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autograd.profiler.record_function("forward"):
            loss = nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    joblib.train(args, model, step, scopes={
        "forward": 1,
        "Optimizer.step#SGD.step": 1,
        "Optimizer.zero_grad#SGD.zero_grad": 1,
    })


if __name__ == "__main__":
    main()
