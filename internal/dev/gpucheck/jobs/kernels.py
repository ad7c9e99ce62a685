"""The transformer's step, so many times; the last ones under torch.profiler, whose rows of devices are counted, or else
their begin and end in window.txt, for who counts otherwise: kernels.py STEPS LAST [profile]."""
import collections, json, sys, time, torch
steps, last, profile = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] == ["profile"]
source = open(sys.path[0] + "/transformer.py").read().split("for i in range(10):")[0]
sys.argv[1:] = ["1", "/dev/null"]
exec(source)
for i in range(steps - last):
    step(i)
torch.cuda.synchronize()
def some():
    for i in range(last):
        step(i)
    torch.cuda.synchronize()
begin = time.time_ns()
if profile:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
        some()
    p.export_chrome_trace("kernels.json")
    rows = [e for e in json.load(open("kernels.json"))["traceEvents"] if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    kernels = [e for e in rows if e["cat"] == "kernel"]
    print("profiler", dict(collections.Counter(e["cat"] for e in rows)), "names", len({e["name"] for e in kernels}),
          "us of kernels", round(sum(e["dur"] for e in kernels), 1))
else:
    some()
    print(begin, "AND", time.time_ns(), file=open("window.txt", "w"))
