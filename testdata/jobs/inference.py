"""A loop of inference with random weights: what it is, and how much of it, is told on the command line.

decode, generate (transformers), diffuse (diffusers) and serve (FastAPI). Ends with {"truth": {"steps": …, "tokens": …,
"requests": …, "seconds": …}} of what it did after the warm-up.
"""
import argparse
import json
import os
import socket
import sys
import threading
import time

import torch


class Decoder(torch.nn.Module):
    """A language model of plain torch, whose keys and values are kept."""

    def __init__(self, words=256, width=64, layers=3, heads=4):
        super().__init__()
        self.heads, self.embed = heads, torch.nn.Embedding(words, width)
        self.layers = torch.nn.ModuleList(torch.nn.ModuleDict({
            "norm": torch.nn.LayerNorm(width), "qkv": torch.nn.Linear(width, 3 * width), "out": torch.nn.Linear(width, width),
            "up": torch.nn.Linear(width, 4 * width), "down": torch.nn.Linear(4 * width, width)}) for _ in range(layers))
        self.head = torch.nn.Linear(width, words)

    def forward(self, tokens, cache):
        x = self.embed(tokens)
        for i, layer in enumerate(self.layers):
            q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in layer["qkv"](layer["norm"](x)).chunk(3, -1))
            if cache[i] is not None:
                k, v = torch.cat([cache[i][0], k], 2), torch.cat([cache[i][1], v], 2)
            cache[i] = (k, v)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=q.shape[2] > 1)
            x = x + layer["out"](y.transpose(1, 2).flatten(2))
            x = x + layer["down"](torch.nn.functional.gelu(layer["up"](x)))
        return self.head(x[:, -1])


def decode():
    model = Decoder().eval()

    def request(i, new=40):
        with torch.no_grad():
            cache, tokens = [None] * len(model.layers), torch.randint(0, 256, (2, 16 + i % 5))
            for _ in range(new):
                tokens = torch.multinomial(torch.softmax(model(tokens, cache), -1), 1)
        return {"steps": new, "tokens": 2 * new, "requests": 2}
    return request


def generate():
    from transformers import GPT2Config, GPT2LMHeadModel
    model = GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=64, n_head=4, vocab_size=256, n_positions=256, bos_token_id=0, eos_token_id=0)).eval()
    model.generation_config.pad_token_id, model.generation_config.eos_token_id = 0, None

    def request(i, new=40):
        model.generate(torch.randint(1, 256, (1, 16 + i % 5)), max_new_tokens=new, do_sample=True)
        return {"steps": new, "tokens": new, "requests": 1}
    return request


def diffuse():
    from diffusers import DDIMScheduler, UNet2DModel
    model = UNet2DModel(sample_size=16, layers_per_block=1, block_out_channels=(16, 32), norm_num_groups=8,
                        down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D")).eval()
    scheduler = DDIMScheduler(num_train_timesteps=1000)

    def request(_, new=20):
        with torch.no_grad():
            scheduler.set_timesteps(new)
            x = torch.randn(2, 3, 16, 16)
            for t in scheduler.timesteps:
                x = scheduler.step(model(x, t).sample, t, x).prev_sample
        return {"steps": new, "tokens": 0, "requests": 0}
    return request


def serve():
    import httpx
    import uvicorn
    from fastapi import FastAPI
    model, app = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 10)).eval(), FastAPI()

    @app.get("/predict")
    def predict(x: float):
        with torch.no_grad():
            return {"best": model(torch.full((1, 64), x)).softmax(-1).argsort(-1).tolist()}

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    client = httpx.Client()

    def request(i):
        client.get(f"http://127.0.0.1:{port}/predict", params={"x": i}).raise_for_status()
        return {"steps": 1, "tokens": 0, "requests": 1}
    return request


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["decode", "generate", "diffuse", "serve"])
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--wait", action="store_true")
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    request = globals()[args.kind]()
    request(0)
    print("ready", os.getpid(), flush=True)
    if args.wait and not sys.stdin.readline():
        sys.exit(2)
    told, begin = {"steps": 0, "tokens": 0, "requests": 0}, time.monotonic()
    for i in range(args.requests):
        for key, n in request(i).items():
            told[key] += n
    told["seconds"] = time.monotonic() - begin
    print(json.dumps({"truth": {"pid": os.getpid(), **told}}), flush=True)
    os._exit(0)  # a server's threads do not hold up the end


if __name__ == "__main__":
    main()
