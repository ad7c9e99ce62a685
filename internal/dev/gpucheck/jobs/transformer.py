"""A transformer's training step on a GPU, one line a step: begin and end (ns since the epoch), until SECS are over."""
import os, sys, time, torch
torch.manual_seed(0)
secs = float(sys.argv[1]); out = open(sys.argv[2], "w", buffering=1)
class Block(torch.nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.n1, self.n2 = torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)
        self.qkv, self.proj = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
        self.up, self.down = torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d)
        self.h = h
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        a = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.down(torch.nn.functional.gelu(self.up(self.n2(x))))
class Model(torch.nn.Module):
    def __init__(self, vocab=8192, d=768, layers=8, heads=12, t=512):
        super().__init__()
        self.emb, self.pos = torch.nn.Embedding(vocab, d), torch.nn.Parameter(torch.zeros(1, t, d))
        self.blocks = torch.nn.ModuleList(Block(d, heads) for _ in range(layers))
        self.norm, self.head = torch.nn.LayerNorm(d), torch.nn.Linear(d, vocab)
    def forward(self, ids):
        x = self.emb(ids) + self.pos[:, :ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
model = Model().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
data = torch.randint(8192, (64, 16, 513)).pin_memory()
def step(i):
    ids = data[i % 64].to("cuda", non_blocking=True)
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    opt.step()
    return loss.item()
for i in range(10):
    step(i)
print("ready", os.getpid(), torch.__version__, torch.cuda.get_device_name(), flush=True)
end = time.time() + secs; i = 0
while time.time() < end:
    a = time.time_ns(); step(i); out.write(f"{a} {time.time_ns()}\n"); i += 1
print("steps", i, "peak bytes", torch.cuda.max_memory_allocated(), flush=True)
