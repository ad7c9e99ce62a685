/* Calls every function of the stub libamdhip64, each variant with arguments of
 * its own, and says what a recording of that has to hold (expect.h).
 *
 *   hipcalls all [wait]
 *   hipcalls late [wait]   launches by what was there before "ready"
 *   hipcalls random SEED [wait]   two threads, streams, waits and events at random */
#define _GNU_SOURCE
#include "hip.h"
#include "expect.h"
#include "steadywork.h"

#include <stdbool.h>

#define P(x) ((uint64_t)(uintptr_t)(x))

/* As hipcc does it: a host function that stands for the kernel. */
__attribute__((noinline, used)) void _Z20__device_stub__scalePfi(void) { __asm__ volatile(""); }
#define STUB ((const void *)_Z20__device_stub__scalePfi)
static char registered; /* its address stands for a kernel with a registered name */

static hipStream_t s;
static hipFunction_t f;
static hipModule_t m;
static uint64_t n = 1000;
static char stream[32], host[8];

#define SIMPLE(name, category, ...) name(__VA_ARGS__); expect("call " #name " " category);
#define ON(name, category, ...) name(__VA_ARGS__); expect("call " #name " " category " stream=%s", stream);

static void launches(void)
{
	dim3 grid = { 2, 3, 4 }, block = { 32, 5, 6 };
	hipLaunchConfig_t config = { grid, block, 0, s, NULL, 0 };
	HIP_LAUNCH_CONFIG driver = { 2, 3, 4, 32, 5, 6, 0, s, NULL, 0 };

#define SIZES "grid_x=2 grid_y=3 grid_z=4 block_x=32 block_y=5 block_z=6 shared_bytes=%lu stream=%s "
#define HOST(name, ...) \
	n++; name(STUB, grid, block, NULL, n, s, ##__VA_ARGS__); \
	expect("call " #name " launch name=scale(float*,~int) " SIZES "name_source=host_stub", n, stream);
	HOST(hipLaunchKernel)
	HOST(hipLaunchKernel_spt)
	HOST(hipLaunchCooperativeKernel)
	HOST(hipLaunchCooperativeKernel_spt)
	HOST(hipExtLaunchKernel, NULL, NULL, 0)
	hipLaunchKernel(&registered, grid, block, NULL, 0, s);
	expect("call hipLaunchKernel launch name=registered_kernel name_source=host_stub");
	config.dynamicSmemBytes = ++n;
	hipLaunchKernelExC(&config, STUB, NULL);
	expect("call hipLaunchKernelExC launch name=scale(float*,~int) " SIZES, n, stream);
#define MODULE "name=of_a_module " SIZES "name_source=getfunction"
	driver.sharedMemBytes = ++n;
	hipDrvLaunchKernelEx(&driver, f, NULL, NULL);
	expect("call hipDrvLaunchKernelEx launch " MODULE, n, stream);
	n++; hipModuleLaunchKernel(f, 2, 3, 4, 32, 5, 6, n, s, NULL, NULL);
	expect("call hipModuleLaunchKernel launch " MODULE, n, stream);
	n++; hipModuleLaunchCooperativeKernel(f, 2, 3, 4, 32, 5, 6, n, s, NULL);
	expect("call hipModuleLaunchCooperativeKernel launch " MODULE, n, stream);
	/* These count work items: 64 by 15 by 24. */
	n++; hipExtModuleLaunchKernel(f, 64, 15, 24, 32, 5, 6, n, s, NULL, NULL, NULL, NULL, 0);
	expect("call hipExtModuleLaunchKernel launch name=of_a_module work_x=64 work_y=15 work_z=24 grid_x=2 grid_y=3 grid_z=4 block_x=32 block_y=5 block_z=6 shared_bytes=%lu stream=%s", n, stream);
	n++; hipHccModuleLaunchKernel(f, 64, 15, 24, 32, 5, 6, n, s, NULL, NULL, NULL, NULL);
	expect("call hipHccModuleLaunchKernel launch name=of_a_module work_x=64 work_y=15 work_z=24 grid_x=2 grid_y=3 grid_z=4 block_x=32 block_y=5 block_z=6 shared_bytes=%lu stream=%s", n, stream);
	hipLaunchByPtr(STUB);
	expect("call hipLaunchByPtr launch name=scale(float*,~int) name_source=host_stub");
	ON(hipLaunchHostFunc, "callback", s, NULL, NULL)
	ON(hipLaunchHostFunc_spt, "callback", s, NULL, NULL)
	ON(hipStreamAddCallback, "callback", s, NULL, NULL, 0)
	ON(hipStreamAddCallback_spt, "callback", s, NULL, NULL, 0)
}

static void copies(void)
{
	hipMemcpy3DParms three = { .extent = { 10, 3, 2 }, .kind = 2 };
	hip_Memcpy2D two = { .Height = 5 };

#define COPY(name, with, d, times, ...) \
	n++; name(__VA_ARGS__); \
	expect("call " #name " copy bytes=%lu direction=" d " stream=%s", n * times, with ? stream : "-");
#define COPY_BOTH(name, ...) COPY(name, __VA_ARGS__) COPY(name##_spt, __VA_ARGS__)
	COPY_BOTH(hipMemcpy, 0, "host_to_device", 1, host, host, n, 1)
	COPY_BOTH(hipMemcpyAsync, 1, "device_to_host", 1, host, host, n, 2, s)
	COPY(hipMemcpyWithStream, 1, "device_to_device", 1, host, host, n, 3, s)
	COPY(hipMemcpyHtoD, 0, "host_to_device", 1, host, host, n)
	COPY(hipMemcpyDtoH, 0, "device_to_host", 1, host, host, n)
	COPY(hipMemcpyDtoD, 0, "device_to_device", 1, host, host, n)
	COPY(hipMemcpyHtoDAsync, 1, "host_to_device", 1, host, host, n, s)
	COPY(hipMemcpyDtoHAsync, 1, "device_to_host", 1, host, host, n, s)
	COPY(hipMemcpyDtoDAsync, 1, "device_to_device", 1, host, host, n, s)
	COPY(hipMemcpyPeer, 0, "device_to_device", 1, host, 1, host, 0, n)
	COPY(hipMemcpyPeerAsync, 1, "device_to_device", 1, host, 1, host, 0, n, s)
	COPY_BOTH(hipMemcpy2D, 0, "host_to_host", 7, host, 1, host, 2, n, 7, 0)
	COPY_BOTH(hipMemcpy2DAsync, 1, "device_to_host", 7, host, 1, host, 2, n, 7, 2, s)
	COPY_BOTH(hipMemcpy2DAsync, 1, "-", 7, host, 1, host, 2, n, 7, 4, s)
#define STRUCT(name, layout, width, with, d, times, ...) \
	n++; layout.width = n; name(&layout, ##__VA_ARGS__); \
	expect("call " #name " copy bytes=%lu direction=" d " stream=%s", n * times, with ? stream : "-");
	STRUCT(hipMemcpy3D, three, extent.width, 0, "device_to_host", 6)
	STRUCT(hipMemcpy3D_spt, three, extent.width, 0, "device_to_host", 6)
	STRUCT(hipMemcpy3DAsync, three, extent.width, 1, "device_to_host", 6, s)
	STRUCT(hipMemcpy3DAsync_spt, three, extent.width, 1, "device_to_host", 6, s)
	STRUCT(hipMemcpyParam2D, two, WidthInBytes, 0, "-", 5)
	STRUCT(hipMemcpyParam2DAsync, two, WidthInBytes, 1, "-", 5, s)
	COPY_BOTH(hipMemcpyToSymbol, 0, "host_to_device", 1, host, host, n, 0, 1)
	COPY_BOTH(hipMemcpyFromSymbol, 0, "device_to_host", 1, host, host, n, 0, 2)
	COPY_BOTH(hipMemcpyToSymbolAsync, 1, "host_to_device", 1, host, host, n, 0, 1, s)
	COPY_BOTH(hipMemcpyFromSymbolAsync, 1, "device_to_host", 1, host, host, n, 0, 2, s)
	COPY(hipMemPrefetchAsync, 1, "managed", 1, host, n, 1, s)
	expect("also device_id=1");
}

static void sets(void)
{
#define SET(name, with, times, ...) \
	n++; name(__VA_ARGS__); expect("call " #name " set bytes=%lu stream=%s", n * times, with ? stream : "-");
	SET(hipMemset, 0, 1, host, 7, n) SET(hipMemset_spt, 0, 1, host, 7, n)
	SET(hipMemsetAsync, 1, 1, host, 7, n, s) SET(hipMemsetAsync_spt, 1, 1, host, 7, n, s)
	SET(hipMemsetD8, 0, 1, host, 7, n) SET(hipMemsetD16, 0, 2, host, 7, n) SET(hipMemsetD32, 0, 4, host, 7, n)
	SET(hipMemsetD8Async, 1, 1, host, 7, n, s) SET(hipMemsetD16Async, 1, 2, host, 7, n, s) SET(hipMemsetD32Async, 1, 4, host, 7, n, s)
	SET(hipMemset2D, 0, 9, host, 1, 7, n, 9) SET(hipMemset2D_spt, 0, 9, host, 1, 7, n, 9)
	SET(hipMemset2DAsync, 1, 9, host, 1, 7, n, 9, s) SET(hipMemset2DAsync_spt, 1, 9, host, 1, 7, n, 9, s)
}

static void memory(void)
{
	void *p = NULL, *h = NULL;
	size_t pitch = 0;
	hipMemAllocationProp prop = { .type = 1, .location = { 1, 1 } };

#define ALLOC(name, space, bytes, ...) \
	n++; name(__VA_ARGS__); \
	expect("call " #name " alloc bytes=%lu", (uint64_t)(bytes)); \
	expect("memory alloc " space " %lu %lu %s", (uint64_t)(bytes), P(p), strcmp(space, "pinned") ? "1" : "-");
#define FREE(name, space, ...) \
	name(p, ##__VA_ARGS__); expect("call " #name " free"); \
	expect("memory free " space " %lu %lu %s", n, P(p), strcmp(space, "pinned") ? "1" : "-");
	ALLOC(hipMalloc, "device", n, &p, n) FREE(hipFree, "device")
	ALLOC(hipExtMallocWithFlags, "device", n, &p, n, 1)
	ALLOC(hipMallocAsync, "device", n, &p, n, s) expect("also stream=%s", stream);
	FREE(hipFreeAsync, "device", s) expect("also stream=%s", stream);
	ALLOC(hipMallocFromPoolAsync, "device", n, &p, n, NULL, s) expect("also stream=%s", stream);
	ALLOC(hipMallocPitch, "device", pitch * 9, &p, &pitch, n, 9)
	ALLOC(hipMemAllocPitch, "device", pitch * 9, &p, &pitch, n, 9, 4)
	ALLOC(hipMallocManaged, "managed", n, &p, n, 1) FREE(hipFree, "managed")
	ALLOC(hipHostMalloc, "pinned", n, &p, n, 0) FREE(hipHostFree, "pinned")
	ALLOC(hipHostAlloc, "pinned", n, &p, n, 0) FREE(hipFreeHost, "pinned")
	ALLOC(hipMallocHost, "pinned", n, &p, n)
	ALLOC(hipMemAllocHost, "pinned", n, &p, n)
	n++;
#define MEMORY(name, category, action, device, address, ...) \
	name(__VA_ARGS__); expect("call " #name " " category); \
	expect("memory " action " device %lu %lu " device, n, P(address));
	MEMORY(hipMemAddressReserve, "alloc", "reserve", "1", p, &p, n, 0, NULL, 0)
	MEMORY(hipMemCreate, "alloc", "alloc", "1", h, &h, n, &prop, 0)
	MEMORY(hipMemMap, "alloc", "map", "1", p, p, n, 0, h, 0)
	SIMPLE(hipMemSetAccess, "alloc", p, n, NULL, 1) expect("also bytes=%lu", n);
	MEMORY(hipMemUnmap, "free", "unmap", "1", p, p, n)
	MEMORY(hipMemRelease, "free", "free", "1", h, h)
	MEMORY(hipMemAddressFree, "free", "unreserve", "1", p, p, n)
	SIMPLE(hipHostRegister, "alloc", host, 8, 0) expect("also bytes=8");
	SIMPLE(hipHostUnregister, "free", host)
	hipMalloc(&p, 1ULL << 40);
	expect("call hipMalloc alloc status=error error_code=2");
	expect("memory out_of_memory device %llu 0 1", 1ULL << 40);
}

static void syncs(void)
{
	hipEvent_t a, b;
	float ms;

	SIMPLE(hipEventCreate, "event", &a) SIMPLE(hipEventCreateWithFlags, "event", &b, 0)
	ON(hipEventRecord, "event", a, s) ON(hipEventRecord_spt, "event", a, s) ON(hipEventRecordWithFlags, "event", b, s, 0)
	ON(hipStreamWaitEvent, "event", s, a, 0) ON(hipStreamWaitEvent_spt, "event", s, a, 0)
	ON(hipStreamSynchronize, "sync", s) ON(hipStreamSynchronize_spt, "sync", s)
	SIMPLE(hipEventSynchronize, "sync", b) SIMPLE(hipDeviceSynchronize, "sync", ) SIMPLE(hipCtxSynchronize, "sync", )
	ON(hipStreamQuery, "event", s) ON(hipStreamQuery_spt, "event", s) SIMPLE(hipEventQuery, "event", b)
	hipEventElapsedTime(&ms, a, b);
	expect("call hipEventElapsedTime event device_time_method=measured");
	SIMPLE(hipEventDestroy, "event", a)
}

static void code(void)
{
	hipModule_t other;
	hipCtx_t c;
	hipStream_t mine;
	uint32_t mask = 1;
	hipGraph_t g;
	hipGraphExec_t e;
	hipGraphNode_t node;
	hipKernelNodeParams params = { { 5, 6, 7 }, NULL, (void *)STUB, { 2, 3, 4 }, NULL, 80 };

	SIMPLE(hipModuleLoad, "module", &other, "file") SIMPLE(hipModuleLoadDataEx, "module", &other, "image", 0, NULL, NULL)
	SIMPLE(hipModuleUnload, "module", other)
	SIMPLE(hipStreamCreateWithFlags, "stream", &mine, 0) expect("also stream=%lu", P(mine));
	SIMPLE(hipStreamDestroy, "stream", mine) expect("also stream=%lu", P(mine));
	SIMPLE(hipStreamCreateWithPriority, "stream", &mine, 0, 0) expect("also stream=%lu", P(mine));
	SIMPLE(hipExtStreamCreateWithCUMask, "stream", &mine, 1, &mask) expect("also stream=%lu", P(mine));
	ON(hipStreamBeginCapture, "graph", s, 0)
	hipModuleLaunchKernel(f, 2, 3, 4, 32, 5, 6, n, s, NULL, NULL);
	expect("call hipModuleLaunchKernel graph name=of_a_module");
	ON(hipStreamEndCapture, "graph", s, &g)
	ON(hipStreamBeginCapture_spt, "graph", s, 0) ON(hipStreamEndCapture_spt, "graph", s, &g)
	SIMPLE(hipGraphCreate, "graph", &g, 0)
	hipGraphAddKernelNode(&node, g, NULL, 0, &params);
	expect("call hipGraphAddKernelNode graph name=scale(float*,~int) grid_x=2 grid_y=3 grid_z=4 block_x=5 block_y=6 block_z=7 shared_bytes=80");
	hipMemcpy3DParms copy = { .extent = { 100, 3, 2 }, .kind = 1 };
	hipMemsetParams set = { .elementSize = 4, .height = 3, .width = 25 };
	hipMemAllocNodeParams room = { .poolProps.location = { 1, 1 }, .bytesize = 4096 };
	hipGraph_t child;
	hipEvent_t event;
	SIMPLE(hipEventCreate, "event", &event)
	hipGraphAddMemcpyNode(&node, g, NULL, 0, &copy);
	expect("call hipGraphAddMemcpyNode graph bytes=600 direction=host_to_device");
	SIMPLE(hipGraphClone, "graph", &child, g)
	hipGraphAddMemcpyNode1D(&node, g, NULL, 0, NULL, NULL, 77, 2);
	expect("call hipGraphAddMemcpyNode1D graph bytes=77 direction=device_to_host");
	SIMPLE(hipGraphAddEmptyNode, "graph", &node, g, NULL, 0) SIMPLE(hipGraphDestroyNode, "graph", node)
	hipGraphAddMemsetNode(&node, g, NULL, 0, &set);
	expect("call hipGraphAddMemsetNode graph bytes=300");
	SIMPLE(hipGraphAddHostNode, "graph", &node, g, NULL, 0, NULL) SIMPLE(hipGraphAddChildGraphNode, "graph", &node, g, NULL, 0, child)
	SIMPLE(hipGraphAddEventRecordNode, "graph", &node, g, NULL, 0, event) SIMPLE(hipGraphAddEventWaitNode, "graph", &node, g, NULL, 0, event)
	hipGraphAddMemAllocNode(&node, g, NULL, 0, &room);
	expect("call hipGraphAddMemAllocNode graph bytes=4096 device_id=1");
	SIMPLE(hipGraphAddMemFreeNode, "graph", &node, g, NULL, 0, room.dptr)
	hipGraphNodeParams any = { .type = 0, .kernel = params };
	hipGraphAddNode(&node, g, NULL, 0, &any);
	expect("call hipGraphAddNode graph name=scale(float*,~int) name_source=host_stub grid_x=2 grid_z=4 block_x=5 block_z=7");
	any = (hipGraphNodeParams){ .type = 4, .graph = { child } };
	hipGraphAddNode(&node, g, NULL, 0, &any);
	expect("call hipGraphAddNode graph grid_x=- name_source=-");
	any = (hipGraphNodeParams){ .type = 2, .memset = set };
	hipGraphAddNode(&node, g, NULL, 0, &any);
	expect("call hipGraphAddNode graph bytes=300 grid_x=- name_source=-");
	any = (hipGraphNodeParams){ .type = 10, .alloc = { .poolProps.location = { 1, 1 }, .bytesize = 777 } };
	hipGraphAddNode(&node, g, NULL, 0, &any);
	expect("call hipGraphAddNode graph bytes=777 device_id=1");
	void *second = any.alloc.dptr;
	any = (hipGraphNodeParams){ .type = 11, .free = { second } };
	hipGraphAddNode(&node, g, NULL, 0, &any);
	expect("call hipGraphAddNode graph bytes=-");
	SIMPLE(hipGraphInstantiate, "graph", &e, g, NULL, NULL, 0) SIMPLE(hipGraphInstantiateWithFlags, "graph", &e, g, 0)
	SIMPLE(hipGraphInstantiateWithParams, "graph", &e, g, NULL) SIMPLE(hipGraphExecUpdate, "graph", e, g, NULL, NULL)
#define REPLAYED(action, bytes, address) expect("memory " action " device %d %lu 1", bytes, P(address));
#define BOTH_NODES REPLAYED("alloc", 4096, room.dptr) REPLAYED("free", 4096, room.dptr) REPLAYED("alloc", 777, second) REPLAYED("free", 777, second)
	ON(hipGraphLaunch, "graph", e, s) BOTH_NODES
	ON(hipGraphLaunch_spt, "graph", e, s) BOTH_NODES
	SIMPLE(hipGraphExecDestroy, "graph", e) SIMPLE(hipGraphDestroy, "graph", g)
	SIMPLE(hipCtxCreate, "context", &c, 0, 0) expect("also context=%lu device_id=0", P(c));
	hipLaunchKernel(STUB, (dim3){ 1, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, NULL);
	expect("call hipLaunchKernel launch device_id=0 context=%lu stream=0", P(c));
#define IN_CONTEXT expect("also context=%lu", P(c));
	SIMPLE(hipCtxPushCurrent, "context", c) IN_CONTEXT SIMPLE(hipCtxPopCurrent, "context", &c) IN_CONTEXT
	SIMPLE(hipCtxSetCurrent, "context", c) IN_CONTEXT
	SIMPLE(hipDevicePrimaryCtxRetain, "context", &c, 1) IN_CONTEXT expect("also device_id=1"); SIMPLE(hipCtxDestroy, "context", c) IN_CONTEXT
}

/* A host function has its name at any age, a handle has not. */
static void late(int wait)
{
	dim3 grid = { 2, 3, 4 }, block = { 32, 5, 6 };
	void *p;

	hipSetDevice(1);
	hipStreamCreate(&s);
	hipModuleLoadData(&m, "image");
	hipModuleGetFunction(&f, m, "of_a_module");
	hipMalloc(&p, 100);
	ready(wait);
	hipLaunchKernel(STUB, grid, block, NULL, 7, s);
	expect("call hipLaunchKernel launch name=scale(float*,~int) name_source=host_stub shared_bytes=7 stream=%lu device_id=-", P(s));
	hipModuleLaunchKernel(f, 2, 3, 4, 32, 5, 6, 8, s, NULL, NULL);
	expect("call hipModuleLaunchKernel launch name=kernel~of~hipcalls name_source=library symbol=- shared_bytes=8 stream=%lu device_id=-", P(s));
	hipModuleGetFunction(&f, m, "of_a_module");
	expect("call hipModuleGetFunction module");
	hipModuleLaunchKernel(f, 2, 3, 4, 32, 5, 6, 9, s, NULL, NULL);
	expect("call hipModuleLaunchKernel launch name=of_a_module name_source=getfunction symbol=of_a_module shared_bytes=9 stream=%lu device_id=-", P(s));
	hipFree(p);
	expect("call hipFree free bytes=-");
	expect("memory free device - %lu -", P(p));
	hipSetDevice(0);
	expect("call hipSetDevice context device_id=0");
	hipModuleLaunchKernel(f, 2, 3, 4, 32, 5, 6, 10, NULL, NULL, NULL);
	expect("call hipModuleLaunchKernel launch name=of_a_module name_source=getfunction device_id=0");
	tell_expected();
}

#define STREAM hipStream_t
#define EVENT hipEvent_t
#define NEW_STREAM(s, i) ((i) == STREAMS - 1 ? (*(s) = 0) : (hipStreamCreate(s), NULL))
#define NEW_EVENT(e) hipEventCreate(e)
#define GIVE(s, us) hipModuleLaunchKernel(f, us, 1, 1, 1, 1, 1, 0, s, NULL, NULL)
#define GIVE_MORE(s, bytes) hipLaunchKernel(STUB, (dim3){ (bytes) / 1000, 1, 1 }, (dim3){ 1, 1, 1 }, NULL, 0, s)
#define RECORD(e, s) hipEventRecord(e, s)
#define STREAM_WAITS(s, e) hipStreamWaitEvent(s, e, 0)
#define ASK_EVENT(e) hipEventQuery(e)
#define ASK_STREAM(s) hipStreamQuery(s)
#define WAIT_EVENT(e) hipEventSynchronize(e)
#define WAIT_STREAM(s) hipStreamSynchronize(s)
#define WAIT_ALL() hipDeviceSynchronize()
#define TIME_BETWEEN(ms, from, to) hipEventElapsedTime(ms, from, to)
#include "randomwork.h"

static void numbered(uint64_t number)
{
	hipModuleLaunchKernel(f, number, 2, 3, 32, 5, 6, number % 1000, s, NULL, NULL);
}

static void steady(void)
{
	hipInit(0);
	hipSetDevice(1);
	hipStreamCreate(&s);
	hipModuleLoadData(&m, "image");
	hipModuleGetFunction(&f, m, "of_a_module");
	steady_work(numbered);
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "steady") == 0)
		return steady(), 0;
	if (argc > 1 && strcmp(argv[1], "late") == 0)
		return late(argc > 2), 0;
	ready(argc > 2 && strcmp(argv[argc - 1], "wait") == 0);
	SIMPLE(hipInit, "context", 0)
	__hipRegisterFunction(NULL, &registered, NULL, "registered_kernel", 0, NULL, NULL, NULL, NULL, NULL);
	expect("call __hipRegisterFunction module");
	hipSetDevice(1);
	expect("call hipSetDevice context device_id=1");
	hipStreamCreate(&s);
	sprintf(stream, "%lu", P(s));
	expect("call hipStreamCreate stream device_id=1 stream=%s", stream);
	SIMPLE(hipModuleLoadData, "module", &m, "image")
	SIMPLE(hipModuleGetFunction, "module", &f, m, "of_a_module")
	if (argc > 2 && strcmp(argv[1], "random") == 0)
		random_work(atoi(argv[2]));
	else
		launches(), copies(), sets(), memory(), syncs(), code();
	tell_expected();
	return 0;
}
