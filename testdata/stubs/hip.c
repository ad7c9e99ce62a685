/* A stub of AMD's runtime, libamdhip64.so.6: see device.h for what it does. Its
 * functions begin as the real ones, "endbr64; push" or "endbr64; sub", with and
 * without a check of the stack at their end, as the compiler makes them of
 * functions with and without a local array. A kernel takes as many microseconds
 * as its grid (or its work) is wide. */
#define _GNU_SOURCE
#include "hip.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY 2
#define INVALID_VALUE 1
#define NOT_READY 600
#define TOO_MUCH (1ULL << 40)

#pragma GCC diagnostic ignored "-Wunused-parameter"

struct ihipModuleSymbol_t { const char *name; };

/* Keeps a call from being a jump, and the compiler from seeing through it. */
#define DO(call) ({ hipError_t status_ = (call); __asm__ volatile("" ::: "memory"); status_; })

static __attribute__((noinline)) hipError_t submitted(const char *name, uint64_t us, hipStream_t s)
{
	char checked[64]; /* the epilogue of a protected function */

	strncpy(checked, name, sizeof(checked) - 1);
	__asm__ volatile("" ::"r"(checked) : "memory");
	stream_give(stream_of(s), (struct work){ name, us * 1000 });
	return 0;
}

static __attribute__((noinline)) hipError_t fine(void)
{
	__asm__ volatile("");
	return 0;
}

static __attribute__((noinline)) hipError_t allocate(void **p, size_t n)
{
	if (n >= TOO_MUCH)
		return OUT_OF_MEMORY;
	if (!p || !n)
		return INVALID_VALUE;
	*p = (void *)fresh();
	return 0;
}

#define BOTH(name, arguments, body) hipError_t name arguments body hipError_t name##_spt arguments body

BOTH(hipLaunchKernel, HOST_LAUNCH, { return f ? DO(submitted("host", grid.x, s)) : 98; })
hipError_t hipLaunchCooperativeKernel(const void *f, dim3 grid, dim3 block, void **args, unsigned shared, hipStream_t s) { return DO(submitted("host", grid.x, s)); }
hipError_t hipLaunchCooperativeKernel_spt(const void *f, dim3 grid, dim3 block, void **args, unsigned shared, hipStream_t s) { return DO(submitted("host", grid.x, s)); }
hipError_t hipExtLaunchKernel(const void *f, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t s, hipEvent_t a, hipEvent_t b, int flags) { return DO(submitted("host", grid.x, s)); }
hipError_t hipLaunchKernelExC(const hipLaunchConfig_t *c, const void *f, void **args) { return DO(submitted("host", c->gridDim.x, c->stream)); }
hipError_t hipDrvLaunchKernelEx(const HIP_LAUNCH_CONFIG *c, hipFunction_t f, void **params, void **extra) { return DO(submitted(f->name, c->gridDimX, c->hStream)); }
hipError_t hipModuleLaunchKernel(MODULE_LAUNCH_10, void **extra) { return f ? DO(submitted(f->name, gx, s)) : 400; }
hipError_t hipModuleLaunchCooperativeKernel(MODULE_LAUNCH_10) { return DO(submitted(f->name, gx, s)); }
hipError_t hipExtModuleLaunchKernel(MODULE_LAUNCH_10, void **extra, hipEvent_t a, hipEvent_t b, uint32_t flags) { return DO(submitted(f->name, gx, s)); }
hipError_t hipHccModuleLaunchKernel(MODULE_LAUNCH_10, void **extra, hipEvent_t a, hipEvent_t b) { return DO(submitted(f->name, gx, s)); }
hipError_t hipLaunchByPtr(const void *f) { return DO(submitted("host", 1, 0)); }

/* All that answers "done" and does nothing. */
#define NOTHING(name, arguments) hipError_t name arguments { return DO(fine()); }
NOTHING(hipLaunchHostFunc, (hipStream_t s, void (*fn)(void *), void *data))
NOTHING(hipLaunchHostFunc_spt, (hipStream_t s, void (*fn)(void *), void *data))
NOTHING(hipStreamAddCallback, (hipStream_t s, void *fn, void *data, unsigned flags))
NOTHING(hipStreamAddCallback_spt, (hipStream_t s, void *fn, void *data, unsigned flags))
#define NOTHING_BOTH(name, arguments) NOTHING(name, arguments) NOTHING(name##_spt, arguments)
NOTHING_BOTH(hipMemcpy, (void *dst, const void *src, size_t n, int kind))
NOTHING_BOTH(hipMemcpyAsync, (void *dst, const void *src, size_t n, int kind, hipStream_t s))
NOTHING(hipMemcpyWithStream, (void *dst, const void *src, size_t n, int kind, hipStream_t s))
NOTHING(hipMemcpyHtoD, (void *dst, const void *src, size_t n))
NOTHING(hipMemcpyDtoH, (void *dst, const void *src, size_t n))
NOTHING(hipMemcpyDtoD, (void *dst, const void *src, size_t n))
NOTHING(hipMemcpyHtoDAsync, (void *dst, const void *src, size_t n, hipStream_t s))
NOTHING(hipMemcpyDtoHAsync, (void *dst, const void *src, size_t n, hipStream_t s))
NOTHING(hipMemcpyDtoDAsync, (void *dst, const void *src, size_t n, hipStream_t s))
NOTHING(hipMemcpyPeer, (void *dst, int dd, const void *src, int sd, size_t n))
NOTHING(hipMemcpyPeerAsync, (void *dst, int dd, const void *src, int sd, size_t n, hipStream_t s))
NOTHING_BOTH(hipMemcpy2D, (void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t h, int kind))
NOTHING_BOTH(hipMemcpy2DAsync, (void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t h, int kind, hipStream_t s))
NOTHING_BOTH(hipMemcpy3D, (const hipMemcpy3DParms *p))
NOTHING_BOTH(hipMemcpy3DAsync, (const hipMemcpy3DParms *p, hipStream_t s))
NOTHING(hipMemcpyParam2D, (const hip_Memcpy2D *c))
NOTHING(hipMemcpyParam2DAsync, (const hip_Memcpy2D *c, hipStream_t s))
NOTHING_BOTH(hipMemcpyToSymbol, (const void *symbol, const void *src, size_t n, size_t at, int kind))
NOTHING_BOTH(hipMemcpyFromSymbol, (void *dst, const void *symbol, size_t n, size_t at, int kind))
NOTHING_BOTH(hipMemcpyToSymbolAsync, (const void *symbol, const void *src, size_t n, size_t at, int kind, hipStream_t s))
NOTHING_BOTH(hipMemcpyFromSymbolAsync, (void *dst, const void *symbol, size_t n, size_t at, int kind, hipStream_t s))
NOTHING(hipMemPrefetchAsync, (const void *p, size_t n, int device, hipStream_t s))
NOTHING_BOTH(hipMemset, (void *p, int v, size_t n))
NOTHING_BOTH(hipMemsetAsync, (void *p, int v, size_t n, hipStream_t s))
NOTHING(hipMemsetD8, (void *p, unsigned char v, size_t n))
NOTHING(hipMemsetD16, (void *p, unsigned short v, size_t n))
NOTHING(hipMemsetD32, (void *p, int v, size_t n))
NOTHING(hipMemsetD8Async, (void *p, unsigned char v, size_t n, hipStream_t s))
NOTHING(hipMemsetD16Async, (void *p, unsigned short v, size_t n, hipStream_t s))
NOTHING(hipMemsetD32Async, (void *p, int v, size_t n, hipStream_t s))
NOTHING_BOTH(hipMemset2D, (void *p, size_t pitch, int v, size_t w, size_t h))
NOTHING_BOTH(hipMemset2DAsync, (void *p, size_t pitch, int v, size_t w, size_t h, hipStream_t s))
NOTHING(hipFree, (void *p))
NOTHING(hipFreeAsync, (void *p, hipStream_t s))
NOTHING(hipHostFree, (void *p))
NOTHING(hipFreeHost, (void *p))
NOTHING(hipMemRelease, (void *h))
NOTHING(hipMemMap, (void *p, size_t n, size_t at, void *h, uint64_t flags))
NOTHING(hipMemUnmap, (void *p, size_t n))
NOTHING(hipMemSetAccess, (void *p, size_t n, const void *desc, size_t count))
NOTHING(hipMemAddressFree, (void *p, size_t n))
NOTHING(hipHostRegister, (void *p, size_t n, unsigned flags))
NOTHING(hipHostUnregister, (void *p))
NOTHING(hipEventDestroy, (hipEvent_t e))
NOTHING(hipInit, (unsigned flags))
NOTHING(hipModuleUnload, (hipModule_t m))
NOTHING(hipSetDevice, (int device))
NOTHING(hipCtxDestroy, (hipCtx_t c))
NOTHING(hipCtxSetCurrent, (hipCtx_t c))
NOTHING(hipCtxPushCurrent, (hipCtx_t c))
NOTHING(hipCtxPopCurrent, (hipCtx_t *c))
NOTHING(hipGraphDestroy, (hipGraph_t g))
NOTHING(hipGraphExecUpdate, (hipGraphExec_t e, hipGraph_t g, hipGraphNode_t *n, int *result))
NOTHING(hipGraphExecDestroy, (hipGraphExec_t e))
NOTHING(hipGraphAddKernelNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const hipKernelNodeParams *p))

hipError_t hipMalloc(void **p, size_t n) { return DO(allocate(p, n)); }
hipError_t hipExtMallocWithFlags(void **p, size_t n, unsigned flags) { return DO(allocate(p, n)); }
hipError_t hipMallocAsync(void **p, size_t n, hipStream_t s) { return DO(allocate(p, n)); }
hipError_t hipMallocFromPoolAsync(void **p, size_t n, void *pool, hipStream_t s) { return DO(allocate(p, n)); }
hipError_t hipMallocPitch(void **p, size_t *pitch, size_t w, size_t h) { *pitch = (w + 255) & ~(size_t)255; return DO(allocate(p, *pitch)); }
hipError_t hipMemAllocPitch(void **p, size_t *pitch, size_t w, size_t h, unsigned e) { *pitch = (w + 255) & ~(size_t)255; return DO(allocate(p, *pitch)); }
hipError_t hipMallocManaged(void **p, size_t n, unsigned flags) { return DO(allocate(p, n)); }
hipError_t hipHostMalloc(void **p, size_t n, unsigned flags) { return DO(allocate(p, n)); }
hipError_t hipHostAlloc(void **p, size_t n, unsigned flags) { return DO(allocate(p, n)); }
hipError_t hipMallocHost(void **p, size_t n) { return DO(allocate(p, n)); }
hipError_t hipMemAllocHost(void **p, size_t n) { return DO(allocate(p, n)); }
hipError_t hipMemCreate(void **h, size_t n, const hipMemAllocationProp *prop, uint64_t flags) { return DO(allocate(h, n)); }
hipError_t hipMemAddressReserve(void **p, size_t n, size_t align, void *at, uint64_t flags) { return DO(allocate(p, n)); }

BOTH(hipStreamSynchronize, (hipStream_t s), { stream_wait(stream_of(s)); return 0; })
hipError_t hipEventSynchronize(hipEvent_t e) { event_wait((struct event *)e); return 0; }
hipError_t hipDeviceSynchronize(void) { device_wait(); return 0; }
hipError_t hipCtxSynchronize(void) { device_wait(); return 0; }
BOTH(hipStreamQuery, (hipStream_t s), { return stream_idle(stream_of(s)) ? 0 : NOT_READY; })
hipError_t hipEventQuery(hipEvent_t e) { return event_passed((struct event *)e) ? 0 : NOT_READY; }
hipError_t hipEventCreate(hipEvent_t *e) { *e = (hipEvent_t)event_new(); return 0; }
hipError_t hipEventCreateWithFlags(hipEvent_t *e, unsigned flags) { *e = (hipEvent_t)event_new(); return 0; }
BOTH(hipEventRecord, (hipEvent_t e, hipStream_t s), { event_record((struct event *)e, stream_of(s)); return 0; })
hipError_t hipEventRecordWithFlags(hipEvent_t e, hipStream_t s, unsigned flags) { event_record((struct event *)e, stream_of(s)); return 0; }
hipError_t hipEventElapsedTime(float *ms, hipEvent_t a, hipEvent_t b) { *ms = event_elapsed_ms((struct event *)a, (struct event *)b); return 0; }
BOTH(hipStreamWaitEvent, (hipStream_t s, hipEvent_t e, unsigned flags), { stream_join(stream_of(s), (struct event *)e); return 0; })

hipError_t hipModuleLoad(hipModule_t *m, const char *file) { *m = (hipModule_t)fresh(); return 0; }
hipError_t hipModuleLoadData(hipModule_t *m, const void *image) { *m = (hipModule_t)fresh(); return 0; }
hipError_t hipModuleLoadDataEx(hipModule_t *m, const void *image, unsigned n, int *options, void **values) { *m = (hipModule_t)fresh(); return 0; }
hipError_t hipModuleGetFunction(hipFunction_t *f, hipModule_t m, const char *name) { *f = calloc(1, sizeof(**f)); (*f)->name = strdup(name); return 0; }
hipError_t hipCtxCreate(hipCtx_t *c, unsigned flags, int device) { *c = (hipCtx_t)fresh(); return 0; }
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t *c, int device) { *c = (hipCtx_t)fresh(); return 0; }
hipError_t hipStreamCreate(hipStream_t *s) { *s = (hipStream_t)stream_new(); return 0; }
hipError_t hipStreamCreateWithFlags(hipStream_t *s, unsigned flags) { *s = (hipStream_t)stream_new(); return 0; }
hipError_t hipStreamCreateWithPriority(hipStream_t *s, unsigned flags, int priority) { *s = (hipStream_t)stream_new(); return 0; }
hipError_t hipExtStreamCreateWithCUMask(hipStream_t *s, uint32_t n, const uint32_t *mask) { *s = (hipStream_t)stream_new(); return 0; }
hipError_t hipStreamDestroy(hipStream_t s) { stream_free(stream_of(s)); return 0; }
BOTH(hipStreamBeginCapture, (hipStream_t s, int mode), { stream_capture(stream_of(s)); return 0; })
BOTH(hipStreamEndCapture, (hipStream_t s, hipGraph_t *g), { *g = (hipGraph_t)stream_end_capture(stream_of(s)); return 0; })
hipError_t hipGraphCreate(hipGraph_t *g, unsigned flags) { *g = (hipGraph_t)graph_new(); return 0; }
hipError_t hipGraphInstantiate(hipGraphExec_t *e, hipGraph_t g, hipGraphNode_t *n, char *log, size_t size) { *e = (hipGraphExec_t)graph_copy((struct graph *)g); return 0; }
hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *e, hipGraph_t g, unsigned long long flags) { *e = (hipGraphExec_t)graph_copy((struct graph *)g); return 0; }
hipError_t hipGraphInstantiateWithParams(hipGraphExec_t *e, hipGraph_t g, void *params) { *e = (hipGraphExec_t)graph_copy((struct graph *)g); return 0; }
BOTH(hipGraphLaunch, (hipGraphExec_t e, hipStream_t s), { graph_give((struct graph *)e, stream_of(s)); return 0; })
void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name, unsigned threads, void *a, void *b, void *c, void *d, int *wsize) { fine(); __asm__ volatile(""); }

static hipError_t node(hipGraphNode_t *n) { *n = (hipGraphNode_t)fresh(); return fine(); }
hipError_t hipGraphClone(hipGraph_t *clone, hipGraph_t original) { *clone = (hipGraph_t)graph_copy((struct graph *)original); return fine(); }
NOTHING(hipGraphDestroyNode, (hipGraphNode_t n))
hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const hipMemcpy3DParms *p) { return node(n); }
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, void *dst, const void *src, size_t bytes, int kind) { return node(n); }
hipError_t hipGraphAddMemsetNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const hipMemsetParams *p) { return node(n); }
hipError_t hipGraphAddHostNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const void *p) { return node(n); }
hipError_t hipGraphAddEmptyNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd) { return node(n); }
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipGraph_t child) { graph_include((struct graph *)g, (struct graph *)child); return node(n); }
hipError_t hipGraphAddEventRecordNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipEvent_t e) { return node(n); }
hipError_t hipGraphAddEventWaitNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipEvent_t e) { return node(n); }
hipError_t hipGraphAddMemAllocNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipMemAllocNodeParams *p) { p->dptr = (void *)fresh(); return node(n); }
hipError_t hipGraphAddMemFreeNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, void *p) { return node(n); }
hipError_t hipGraphAddNode(hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipGraphNodeParams *p) { if (p->type == 4) graph_include((struct graph *)g, (struct graph *)p->graph.graph); if (p->type == 10) p->alloc.dptr = (void *)fresh(); return node(n); }
