import os, sys, time, torch, torch.distributed as dist
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29533", RANK="0", WORLD_SIZE="1")
x = torch.ones(1 << 20, device="cuda")
print("ready", flush=True); time.sleep(float(sys.argv[1]))
dist.init_process_group("nccl")
n = {"all_reduce": 0, "all_gather": 0, "broadcast": 0, "reduce_scatter": 0}
for i in range(20):
    dist.all_reduce(x); n["all_reduce"] += 1
    dist.broadcast(x, 0); n["broadcast"] += 1
    if i % 2 == 0:
        dist.all_gather_into_tensor(torch.empty_like(x), x); n["all_gather"] += 1
    if i % 4 == 0:
        dist.reduce_scatter_tensor(torch.empty_like(x), x); n["reduce_scatter"] += 1
torch.cuda.synchronize(); print("made", n, torch.cuda.nccl.version(), flush=True); time.sleep(2)
dist.destroy_process_group()
