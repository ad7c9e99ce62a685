/* Calls every function of the stub libcuda, each variant with arguments of its
 * own, and says what a recording of that has to hold (expect.h).
 *
 *   cudacalls all [wait]          every function
 *   cudacalls errors [wait]       what fails
 *   cudacalls launches N [wait]   N launches by a handle made before "ready",
 *                                 on stream and device chosen before it
 *   cudacalls proc [wait]         as the static runtime: by cuGetProcAddress
 *   cudacalls times [wait]        work of known length, waits, events, polls
 *   cudacalls graphs [wait]       captures and replays
 *   cudacalls memory [wait]       graphs that allocate and free
 *   cudacalls conditional [wait]  graphs of which the device decides what runs
 *   cudacalls random SEED [wait]  two threads, streams, waits and events at random
 *   cudacalls steady              numbered launches until a line of input (steadywork.h)
 *   cudacalls loop N [PERIOD]     N launches for each line of input, as fast as
 *                                 they go or one in PERIOD ns; prints ns each */
#define _GNU_SOURCE
#include "cuda.h"
#include "expect.h"
#include "steadywork.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <time.h>

#define LENGTH(a) (sizeof(a) / sizeof(*(a)))
#define P(x) ((uint64_t)(uintptr_t)(x))
#define KERNEL "_Z5scalePfi"
#define SHOWN "name=scale(float*,~int)"

static CUfunction f;
static CUstream s;
static CUcontext c0, c1;
static CUmodule m;
static uint64_t n = 1000; /* another for each call */
static char host[64];

static void launches(void)
{
	void *params[1] = { 0 };
	CUlaunchConfig config = { 2, 3, 4, 32, 5, 6, 700, s, 0, 0 };
	CUDA_LAUNCH_PARAMS list[1] = { { f, 7, 8, 9, 10, 11, 12, 1300, s, params } };

#define LAUNCH(name, ...)                                                                                  \
	n++;                                                                                               \
	name(f, n % 7 + 1, 3, 4, 32, 5, 6, n, s, params, ##__VA_ARGS__);                                   \
	expect("call " #name " launch " SHOWN " grid_x=%lu grid_y=3 grid_z=4 block_x=32 block_y=5 "        \
	       "block_z=6 shared_bytes=%lu stream=%lu name_source=getfunction symbol=" KERNEL,             \
	       n % 7 + 1, n, P(s));
	LAUNCH(cuLaunchKernel, NULL)
	LAUNCH(cuLaunchKernel_ptsz, NULL)
	LAUNCH(cuLaunchCooperativeKernel)
	LAUNCH(cuLaunchCooperativeKernel_ptsz)
#define LAUNCH_EX(name)                                                                                    \
	config.sharedMemBytes = ++n;                                                                       \
	name(&config, f, params, NULL);                                                                    \
	expect("call " #name " launch " SHOWN " grid_x=2 grid_y=3 grid_z=4 block_x=32 block_y=5 "          \
	       "block_z=6 shared_bytes=%lu stream=%lu name_source=getfunction",                            \
	       n, P(s));
	LAUNCH_EX(cuLaunchKernelEx)
	LAUNCH_EX(cuLaunchKernelEx_ptsz)
	cuLaunchCooperativeKernelMultiDevice(list, 1, 0);
	expect("call cuLaunchCooperativeKernelMultiDevice launch " SHOWN " grid_x=7 grid_y=8 grid_z=9 "
	       "block_x=10 block_y=11 block_z=12 shared_bytes=1300 stream=%lu", P(s));
	cuLaunch(f);
	expect("call cuLaunch launch " SHOWN " stream=- grid_x=-");
	cuLaunchGrid(f, 5, 6);
	expect("call cuLaunchGrid launch " SHOWN " grid_x=5 grid_y=6 grid_z=1 block_x=- stream=-");
	cuLaunchGridAsync(f, 7, 8, s);
	expect("call cuLaunchGridAsync launch " SHOWN " grid_x=7 grid_y=8 grid_z=1 stream=%lu", P(s));
#define CALLBACK(name, ...)                                                                                \
	name(s, ##__VA_ARGS__);                                                                            \
	expect("call " #name " callback stream=%lu", P(s));
	CALLBACK(cuLaunchHostFunc, NULL, NULL)
	CALLBACK(cuLaunchHostFunc_ptsz, NULL, NULL)
	CALLBACK(cuStreamAddCallback, NULL, NULL, 0)
	CALLBACK(cuStreamAddCallback_ptsz, NULL, NULL, 0)
}

static void copies(void)
{
#define COPY(name, with, direction_, ...)                                                                  \
	n++;                                                                                               \
	name(__VA_ARGS__);                                                                                 \
	expect("call " #name " copy bytes=%lu direction=" direction_ " stream=%s", n, with ? stream : "-");
	char stream[32];
	sprintf(stream, "%lu", P(s));
#define DIRECTION(name, d)                                                                                 \
	COPY(name, 0, d, 1, 2, n)                                                                          \
	COPY(name##_v2, 0, d, 1, 2, n)                                                                     \
	COPY(name##_v2_ptds, 0, d, 1, 2, n)                                                                \
	COPY(name##Async, 1, d, 1, 2, n, s)                                                                \
	COPY(name##Async_v2, 1, d, 1, 2, n, s)                                                             \
	COPY(name##Async_v2_ptsz, 1, d, 1, 2, n, s)
	DIRECTION(cuMemcpyHtoD, "host_to_device")
	DIRECTION(cuMemcpyDtoH, "device_to_host")
	DIRECTION(cuMemcpyDtoD, "device_to_device")
	COPY(cuMemcpy, 0, "-", 1, 2, n)
	COPY(cuMemcpy_ptds, 0, "-", 1, 2, n)
	COPY(cuMemcpyAsync, 1, "-", 1, 2, n, s)
	COPY(cuMemcpyAsync_ptsz, 1, "-", 1, 2, n, s)
	COPY(cuMemcpyPeer, 0, "device_to_device", 1, c0, 2, c1, n)
	COPY(cuMemcpyPeer_ptds, 0, "device_to_device", 1, c0, 2, c1, n)
	COPY(cuMemcpyPeerAsync, 1, "device_to_device", 1, c0, 2, c1, n, s)
	COPY(cuMemcpyPeerAsync_ptsz, 1, "device_to_device", 1, c0, 2, c1, n, s)
#define ARRAY(name, d, ...)                                                                                \
	COPY(name, 0, d, __VA_ARGS__)                                                                      \
	COPY(name##_v2, 0, d, __VA_ARGS__)                                                                 \
	COPY(name##_v2_ptds, 0, d, __VA_ARGS__)
	ARRAY(cuMemcpyHtoA, "host_to_device", NULL, 3, host, n)
	ARRAY(cuMemcpyAtoH, "device_to_host", host, NULL, 3, n)
	ARRAY(cuMemcpyDtoA, "device_to_device", NULL, 3, 4, n)
	ARRAY(cuMemcpyAtoD, "device_to_device", 4, NULL, 3, n)
	ARRAY(cuMemcpyAtoA, "device_to_device", NULL, 3, NULL, 4, n)
	COPY(cuMemcpyHtoAAsync, 1, "host_to_device", NULL, 3, host, n, s)
	COPY(cuMemcpyAtoHAsync, 1, "device_to_host", host, NULL, 3, n, s)
	COPY(cuMemcpyHtoAAsync_v2, 1, "host_to_device", NULL, 3, host, n, s)
	COPY(cuMemcpyHtoAAsync_v2_ptsz, 1, "host_to_device", NULL, 3, host, n, s)
	COPY(cuMemcpyAtoHAsync_v2, 1, "device_to_host", host, NULL, 3, n, s)
	COPY(cuMemcpyAtoHAsync_v2_ptsz, 1, "device_to_host", host, NULL, 3, n, s)
	COPY(cuMemPrefetchAsync, 1, "managed", 1, n, 1, s)
	expect("also device_id=1");
	COPY(cuMemPrefetchAsync_ptsz, 1, "managed", 1, n, 1, s)
	expect("also device_id=1");
	CUmemLocation to = { 1, 1 };
	COPY(cuMemPrefetchAsync_v2, 1, "managed", 1, n, to, 0, s)
	expect("also device_id=1");
	COPY(cuMemPrefetchAsync_v2_ptsz, 1, "managed", 1, n, to, 0, s)
	expect("also device_id=1");
}

static void structs(void)
{
	CUDA_MEMCPY2D_v1 two1 = { .srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .Height = 3 };
	CUDA_MEMCPY2D two = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .dstMemoryType = CU_MEMORYTYPE_HOST, .Height = 5 };
	CUDA_MEMCPY3D_v1 three1 = { .srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_ARRAY, .Height = 3, .Depth = 2 };
	CUDA_MEMCPY3D three = { .srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .Height = 5, .Depth = 7 };
	CUDA_MEMCPY3D anywhere = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .Height = 5, .Depth = 7 };

#define STRUCT(name, layout, times, with, d, ...)                                                          \
	layout.WidthInBytes = ++n;                                                                         \
	name(&layout, ##__VA_ARGS__);                                                                      \
	expect("call " #name " copy bytes=%lu direction=" d " stream=%s", n *times, with ? stream : "-");
	char stream[32];
	sprintf(stream, "%lu", P(s));
	STRUCT(cuMemcpy2D, two1, 3, 0, "host_to_device")
	STRUCT(cuMemcpy2D_v2, two, 5, 0, "device_to_host")
	STRUCT(cuMemcpy2D_v2_ptds, two, 5, 0, "device_to_host")
	STRUCT(cuMemcpy2DUnaligned, two1, 3, 0, "host_to_device")
	STRUCT(cuMemcpy2DUnaligned_v2, two, 5, 0, "device_to_host")
	STRUCT(cuMemcpy2DUnaligned_v2_ptds, two, 5, 0, "device_to_host")
	STRUCT(cuMemcpy2DAsync, two1, 3, 1, "host_to_device", s)
	STRUCT(cuMemcpy2DAsync_v2, two, 5, 1, "device_to_host", s)
	STRUCT(cuMemcpy2DAsync_v2_ptsz, two, 5, 1, "device_to_host", s)
	STRUCT(cuMemcpy3D, three1, 6, 0, "host_to_device")
	STRUCT(cuMemcpy3D_v2, three, 35, 0, "host_to_device")
	STRUCT(cuMemcpy3D_v2_ptds, three, 35, 0, "host_to_device")
	STRUCT(cuMemcpy3DAsync, three1, 6, 1, "host_to_device", s)
	STRUCT(cuMemcpy3DAsync_v2, three, 35, 1, "host_to_device", s)
	STRUCT(cuMemcpy3DAsync_v2_ptsz, three, 35, 1, "host_to_device", s)
	STRUCT(cuMemcpy3DPeer, three, 35, 0, "host_to_device")
	STRUCT(cuMemcpy3DPeer_ptds, three, 35, 0, "host_to_device")
	STRUCT(cuMemcpy3DPeerAsync, three, 35, 1, "host_to_device", s)
	STRUCT(cuMemcpy3DPeerAsync_ptsz, three, 35, 1, "host_to_device", s)
	STRUCT(cuMemcpy3D_v2, anywhere, 35, 0, "-")
}

static void sets(void)
{
	char stream[32];
	sprintf(stream, "%lu", P(s));
#define SET(name, with, bytes, ...)                                                                        \
	n++;                                                                                               \
	name(__VA_ARGS__);                                                                                 \
	expect("call " #name " set bytes=%lu stream=%s", (uint64_t)(bytes), with ? stream : "-");
#define ELEMENT(type, size)                                                                                \
	SET(cuMemset##type, 0, n * size, 1, 7, n)                                                          \
	SET(cuMemset##type##_v2, 0, n * size, 1, 7, n)                                                     \
	SET(cuMemset##type##_v2_ptds, 0, n * size, 1, 7, n)                                                \
	SET(cuMemset##type##Async, 1, n * size, 1, 7, n, s)                                                \
	SET(cuMemset##type##Async_ptsz, 1, n * size, 1, 7, n, s)                                           \
	SET(cuMemsetD2##type, 0, n * 3 * size, 1, 4096, 7, n, 3)                                           \
	SET(cuMemsetD2##type##_v2, 0, n * 3 * size, 1, 4096, 7, n, 3)                                      \
	SET(cuMemsetD2##type##_v2_ptds, 0, n * 3 * size, 1, 4096, 7, n, 3)                                 \
	SET(cuMemsetD2##type##Async, 1, n * 3 * size, 1, 4096, 7, n, 3, s)                                 \
	SET(cuMemsetD2##type##Async_ptsz, 1, n * 3 * size, 1, 4096, 7, n, 3, s)
	ELEMENT(D8, 1)
	ELEMENT(D16, 2)
	ELEMENT(D32, 4)
}

static void memory(void)
{
	CUdeviceptr p = 0;
	CUdeviceptr_v1 old = 0;
	size_t pitch = 0;
	unsigned pitch1 = 0;
	void *pinned = NULL;
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 1 } };

#define ALLOC(name, space, ptr, bytes, ...)                                                                \
	n++;                                                                                               \
	name(__VA_ARGS__);                                                                                 \
	expect("call " #name " alloc bytes=%lu", (uint64_t)(bytes));                                       \
	expect("memory alloc " space " %lu %lu %s", (uint64_t)(bytes), P(ptr), strcmp(space, "pinned") ? "0" : "-");
#define FREE(name, space, ptr, bytes, ...)                                                                 \
	name(ptr, ##__VA_ARGS__);                                                                          \
	expect("call " #name " free");                                                                     \
	expect("memory free " space " %lu %lu %s", (uint64_t)(bytes), P(ptr), strcmp(space, "pinned") ? "0" : "-");
	ALLOC(cuMemAlloc, "device", old, n, &old, n)
	FREE(cuMemFree, "device", old, n)
	ALLOC(cuMemAlloc_v2, "device", p, n, &p, n)
	FREE(cuMemFree_v2, "device", p, n)
	ALLOC(cuMemAllocPitch, "device", old, pitch1 * 9UL, &old, &pitch1, n, 9, 4)
	ALLOC(cuMemAllocPitch_v2, "device", p, pitch * 9, &p, &pitch, n, 9, 4)
	ALLOC(cuMemAllocManaged, "managed", p, n, &p, n, 1)
	FREE(cuMemFree_v2, "managed", p, n)
	ALLOC(cuMemAllocHost, "pinned", pinned, n, &pinned, n)
	FREE(cuMemFreeHost, "pinned", pinned, n)
	ALLOC(cuMemAllocHost_v2, "pinned", pinned, n, &pinned, n)
	ALLOC(cuMemHostAlloc, "pinned", pinned, n, &pinned, n, 0)
	ALLOC(cuMemAllocAsync, "device", p, n, &p, n, s)
	expect("also stream=%lu", P(s));
	FREE(cuMemFreeAsync, "device", p, n, s)
	expect("also stream=%lu", P(s));
	ALLOC(cuMemAllocAsync_ptsz, "device", p, n, &p, n, s)
	expect("also stream=%lu", P(s));
	FREE(cuMemFreeAsync_ptsz, "device", p, n, s)
	expect("also stream=%lu", P(s));
	ALLOC(cuMemAllocFromPoolAsync, "device", p, n, &p, n, NULL, s)
	expect("also stream=%lu", P(s));
	ALLOC(cuMemAllocFromPoolAsync_ptsz, "device", p, n, &p, n, NULL, s)
	expect("also stream=%lu", P(s));

	CUmemGenericAllocationHandle h = 0;
	CUdeviceptr at = 0;
#define MEMORY(name, category, action, device, bytes, address, ...)                                        \
	name(__VA_ARGS__);                                                                                 \
	expect("call " #name " " category);                                                                \
	expect("memory " action " device %lu %lu " device, (uint64_t)(bytes), (uint64_t)(address));
	n++;
	MEMORY(cuMemAddressReserve, "alloc", "reserve", "0", n, at, &at, n, 0, 0, 0)
	MEMORY(cuMemCreate, "alloc", "alloc", "1", n, h, &h, n, &prop, 0)
	MEMORY(cuMemMap, "alloc", "map", "0", n, at, at, n, 0, h, 0)
	cuMemSetAccess(at, n, NULL, 1);
	expect("call cuMemSetAccess alloc bytes=%lu", n);
	MEMORY(cuMemUnmap, "free", "unmap", "0", n, at, at, n)
	MEMORY(cuMemRelease, "free", "free", "1", n, h, h)
	MEMORY(cuMemAddressFree, "free", "unreserve", "0", n, at, at, n)
#define PIN(name)                                                                                          \
	n++;                                                                                               \
	name(host, n, 0);                                                                                  \
	expect("call " #name " alloc bytes=%lu", n);
	PIN(cuMemHostRegister)
	PIN(cuMemHostRegister_v2)
	cuMemHostUnregister(host);
	expect("call cuMemHostUnregister free");
	cuMemFree_v2(0); /* nothing */
	expect("call cuMemFree_v2 free");
}

static void syncs(void)
{
	CUevent a, b;
	float ms;

#define SIMPLE(name, category, ...)                                                                        \
	name(__VA_ARGS__);                                                                                 \
	expect("call " #name " " category);
#define ON(name, category, ...)                                                                            \
	name(__VA_ARGS__);                                                                                 \
	expect("call " #name " " category " stream=%lu", P(s));
	SIMPLE(cuEventCreate, "event", &a, 0)
	SIMPLE(cuEventCreate, "event", &b, 0)
	ON(cuEventRecord, "event", a, s)
	ON(cuEventRecord_ptsz, "event", a, s)
	ON(cuEventRecordWithFlags, "event", b, s, 0)
	ON(cuEventRecordWithFlags_ptsz, "event", b, s, 0)
	ON(cuStreamWaitEvent, "event", s, a, 0)
	ON(cuStreamWaitEvent_ptsz, "event", s, a, 0)
	ON(cuStreamSynchronize, "sync", s)
	ON(cuStreamSynchronize_ptsz, "sync", s)
	SIMPLE(cuEventSynchronize, "sync", b)
	SIMPLE(cuCtxSynchronize, "sync", )
	cuCtxSynchronize_v2(c0);
	expect("call cuCtxSynchronize_v2 sync context=%lu", P(c0));
	ON(cuStreamQuery, "event", s)
	ON(cuStreamQuery_ptsz, "event", s)
	SIMPLE(cuEventQuery, "event", b)
#define ELAPSED(name)                                                                                      \
	name(&ms, a, b);                                                                                   \
	expect("call " #name " event device_time_method=measured");
	ELAPSED(cuEventElapsedTime)
	ELAPSED(cuEventElapsedTime_v2)
	SIMPLE(cuEventDestroy, "event", a)
	SIMPLE(cuEventDestroy_v2, "event", b)
}

static void modules(void)
{
	CUmodule other;
	CUlibrary l;
	CUkernel k;
	CUfunction g;
	const char *name;
	void *entry;
	int status;

	SIMPLE(cuModuleLoad, "module", &other, "a file")
	SIMPLE(cuModuleLoadData, "module", &other, "image")
	SIMPLE(cuModuleLoadDataEx, "module", &other, "image", 0, NULL, NULL)
	SIMPLE(cuModuleLoadFatBinary, "module", &other, "image")
	SIMPLE(cuModuleGetFunction, "module", &g, other, "of_a_module")
	cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	expect("call cuLaunchKernel launch name=of_a_module");
	SIMPLE(cuModuleUnload, "module", other)
	cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL); /* a handle that is gone: whatever has it now */
	expect("call cuLaunchKernel launch");
	SIMPLE(cuLibraryLoadData, "module", &l, "code", NULL, NULL, 0, NULL, NULL, 0)
	SIMPLE(cuLibraryLoadFromFile, "module", &l, "file", NULL, NULL, 0, NULL, NULL, 0)
	SIMPLE(cuLibraryGetKernel, "module", &k, l, "of_a_library")
	cuLaunchKernel((CUfunction)k, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	expect("call cuLaunchKernel launch name=of_a_library name_source=getfunction");
	SIMPLE(cuKernelGetFunction, "module", &g, k)
	expect("also handle=%lu", P(k));
	cuLaunchKernel(g, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	expect("call cuLaunchKernel launch name=of_a_library name_source=getfunction");
	SIMPLE(cuLibraryGetModule, "module", &other, l)
	SIMPLE(cuLibraryEnumerateKernels, "module", &k, 1, l)
	SIMPLE(cuFuncGetName, "module", &name, g)
	SIMPLE(cuKernelGetName, "module", &name, k)
	SIMPLE(cuLibraryUnload, "module", l)
	SIMPLE(cuGetProcAddress, "module", "cuInit", &entry, 12000, 0)
	SIMPLE(cuGetProcAddress_v2, "module", "cuInit", &entry, 12000, 0, &status)
}

static void contexts(void)
{
	CUcontext made[4], popped;
	CUdevice d;
	CUdeviceptr p;

	/* Whatever is current, an allocation without a stream says its device. */
#define HERE(device)                                                                                       \
	n++;                                                                                               \
	cuMemAlloc_v2(&p, n);                                                                              \
	expect("call cuMemAlloc_v2 alloc device_id=%s bytes=%lu", device, n);                              \
	expect("memory alloc device %lu %lu %s", n, p, device);
	SIMPLE(cuCtxCreate, "context", &made[0], 0, 1)
	expect("also context=%lu device_id=1", P(made[0]));
	HERE("1")
	SIMPLE(cuCtxCreate_v2, "context", &made[1], 0, 0)
	expect("also context=%lu device_id=0", P(made[1]));
	HERE("0")
	SIMPLE(cuCtxCreate_v3, "context", &made[2], NULL, 0, 0, 1)
	expect("also context=%lu device_id=1", P(made[2]));
	HERE("1")
	SIMPLE(cuCtxCreate_v4, "context", &made[3], NULL, 0, 0)
	expect("also context=%lu device_id=0", P(made[3]));
	HERE("0")
	SIMPLE(cuCtxPopCurrent, "context", &popped)
	expect("also context=%lu", P(popped));
	HERE("1")
	SIMPLE(cuCtxPopCurrent_v2, "context", &popped)
	expect("also context=%lu", P(popped));
	HERE("0")
	SIMPLE(cuCtxPushCurrent, "context", made[0])
	expect("also context=%lu", P(made[0]));
	HERE("1")
	SIMPLE(cuCtxPushCurrent_v2, "context", made[1])
	expect("also context=%lu", P(made[1]));
	SIMPLE(cuCtxGetDevice, "context", &d)
	expect("also device_id=0");
	HERE("0")
	SIMPLE(cuCtxSetCurrent, "context", c1)
	HERE("1")
	SIMPLE(cuCtxDestroy, "context", made[2])
	expect("also context=%lu", P(made[2]));
	SIMPLE(cuCtxDestroy_v2, "context", made[3])
	expect("also context=%lu", P(made[3]));
	SIMPLE(cuDevicePrimaryCtxRelease, "context", 1)
	expect("also device_id=1");
	SIMPLE(cuDevicePrimaryCtxRelease_v2, "context", 1)
	expect("also device_id=1");
	SIMPLE(cuDevicePrimaryCtxReset, "context", 1)
	expect("also device_id=1");
	SIMPLE(cuDevicePrimaryCtxReset_v2, "context", 1)
	expect("also device_id=1");

	CUstream mine;
	SIMPLE(cuStreamCreateWithPriority, "stream", &mine, 0, -1)
	expect("also stream=%lu", P(mine));
	SIMPLE(cuCtxSetCurrent, "context", c0)
	cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, mine, NULL, NULL); /* the stream's device, not the current one */
	expect("call cuLaunchKernel launch device_id=1 context=%lu", P(c1));
	cuStreamSynchronize(mine);
	expect("call cuStreamSynchronize sync");
	SIMPLE(cuStreamDestroy, "stream", mine)
	expect("also stream=%lu", P(mine));
	SIMPLE(cuStreamCreate, "stream", &mine, 0)
	expect("also stream=%lu", P(mine));
	SIMPLE(cuStreamDestroy_v2, "stream", mine)
	expect("also stream=%lu", P(mine));
}

#include "cudacalls_graphs.h"

/* setup makes what the calls need; expected says whether it is recorded too. */
static void numbered(uint64_t number)
{
	cuLaunchKernel(f, number, 2, 3, 32, 5, 6, number % 1000, s, NULL, NULL);
}

static void setup(int recorded)
{
	cuInit(0);
	cuDevicePrimaryCtxRetain(&c0, 0);
	cuDevicePrimaryCtxRetain(&c1, 1);
	cuCtxSetCurrent(c0);
	cuStreamCreate(&s, 0);
	cuModuleLoadData(&m, "image");
	cuModuleGetFunction(&f, m, KERNEL);
	if (!recorded)
		return;
	expect("call cuInit context");
	expect("call cuDevicePrimaryCtxRetain context context=%lu device_id=0", P(c0));
	expect("call cuDevicePrimaryCtxRetain context context=%lu device_id=1", P(c1));
	expect("call cuCtxSetCurrent context context=%lu", P(c0));
	expect("call cuStreamCreate stream device_id=0 context=%lu", P(c0));
	expect("call cuModuleLoadData module");
	expect("call cuModuleGetFunction module");
}

static void errors(void)
{
	CUdeviceptr p = 77;
	CUfunction g;
	CUcontext c;

	cuMemAlloc_v2(&p, 1ULL << 40);
	expect("call cuMemAlloc_v2 alloc status=error error_code=2 bytes=%llu", 1ULL << 40);
	expect("memory out_of_memory device %llu 0 0", 1ULL << 40);
	cuMemAlloc_v2(NULL, 64); /* a null out-pointer */
	expect("call cuMemAlloc_v2 alloc status=error error_code=1 bytes=64");
	cuMemAlloc_v2(&p, 0);
	expect("call cuMemAlloc_v2 alloc status=error error_code=1");
	cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	expect("call cuLaunchKernel launch status=error error_code=400");
	cuModuleGetFunction(&g, m, "missing");
	expect("call cuModuleGetFunction module status=error error_code=500");
	cuCtxPopCurrent_v2(&c);
	expect("call cuCtxPopCurrent_v2 context status=ok");
	cuCtxPopCurrent_v2(&c);
	expect("call cuCtxPopCurrent_v2 context status=error error_code=201");
	cuLaunchKernel(f, LONG_US, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	expect("call cuLaunchKernel launch status=ok");
	under_way(cuStreamQuery(s) == CUDA_ERROR_NOT_READY);
	expect("call cuStreamQuery event status=not_ready");
	cuStreamSynchronize(s);
	expect("call cuStreamSynchronize sync status=ok");
	broken_capture();
}

/* The static runtime: every entry point comes from cuGetProcAddress. */
static void proc(void)
{
	CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
	CUresult (*alloc)(CUdeviceptr *, size_t);
	CUresult (*get)(const char *, void **, int, uint64_t, int *) = dlsym(RTLD_DEFAULT, "cuGetProcAddress_v2");
	CUdeviceptr p;

	get("cuLaunchKernel", (void **)&launch, 7000, 2, NULL); /* the thread's own default stream */
	get("cuMemAlloc", (void **)&alloc, 12000, 0, NULL);
	expect("call cuGetProcAddress_v2 module");
	expect("call cuGetProcAddress_v2 module");
	launch(f, 3, 4, 5, 6, 7, 8, 900, s, NULL, NULL);
	expect("call cuLaunchKernel_ptsz launch " SHOWN " grid_x=3 grid_y=4 grid_z=5 block_x=6 block_y=7 block_z=8 "
	       "shared_bytes=900 stream=%lu", P(s));
	alloc(&p, 4242);
	expect("call cuMemAlloc_v2 alloc bytes=4242");
	expect("memory alloc device 4242 %lu 0", p);
}

#include "cudacalls_times.h"

int main(int argc, char **argv)
{
	int wait = argc > 1 && strcmp(argv[argc - 1], "wait") == 0;
	const char *mode = argc > 1 ? argv[1] : "all";
	long count = argc > 2 ? atol(argv[2]) : 0;

	if (strcmp(mode, "loop") == 0) {
		setup(0);
		ready(0);
		char line[16];
		while (fgets(line, sizeof(line), stdin))
			loop(count, argc > 3 ? atol(argv[3]) : 0);
		return 0;
	}
	if (strcmp(mode, "steady") == 0) {
		setup(0);
		steady_work(numbered);
		return 0;
	}
	if (strcmp(mode, "launches") == 0) {
		setup(0);
		for (long i = 0; i < 10; i++)
			cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		ready(wait);
		for (long i = 0; i < count; i++) {
			cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, i, s, NULL, NULL);
			expect("call cuLaunchKernel launch shared_bytes=%ld stream=%lu device_id=-", i, P(s));
		}
	} else {
		ready(wait);
		setup(1);
		if (strcmp(mode, "all") == 0)
			launches(), copies(), structs(), sets(), memory(), syncs(), modules(), contexts(), graphs();
		else if (strcmp(mode, "errors") == 0)
			errors();
		else if (strcmp(mode, "proc") == 0)
			proc();
		else if (strcmp(mode, "times") == 0)
			times();
		else if (strcmp(mode, "random") == 0)
			random_work(count);
		else if (strcmp(mode, "graphs") == 0)
			replays();
		else if (strcmp(mode, "memory") == 0)
			graph_memory();
		else if (strcmp(mode, "conditional") == 0)
			conditionals();
	}
	tell_expected();
	return 0;
}
