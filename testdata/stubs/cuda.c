/* A stub of NVIDIA's driver library, libcuda.so.1: see device.h for what it does
 * and thunk.h for how its functions begin. A kernel takes as many microseconds
 * as its grid is wide, a copy one per KiB. An allocation of STUB_TOO_MUCH bytes or
 * more finds no room; a null kernel is refused. */
#define _GNU_SOURCE
#include "cuda.h"
#include "device.h"
#include "thunk.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((visibility("hidden"), used)) unsigned stub_flag = 0;

#define STUB_TOO_MUCH (1ULL << 40)
#define INVALID_HANDLE 400
#define CAPTURE_UNSUPPORTED 900
#define CAPTURE_INVALIDATED 901

/* As in the driver, the name is the second word of a kernel's handle. With
 * NAME_MOVED it is elsewhere, as it may be in the next driver. */
#ifdef NAME_MOVED
#define BEFORE_NAME uint64_t kind, more[16]
#else
#define BEFORE_NAME uint64_t kind
#endif
struct CUfunc_st { BEFORE_NAME; const char *name; };
struct CUkern_st { BEFORE_NAME; const char *name; struct CUfunc_st *function; };
struct CUlib_st { int unused; };
struct CUmod_st { int unused; };
struct CUctx_st { CUdevice device; };

static __thread CUcontext current[16];
static __thread int depth;

/* IMPL is the code behind a name, EXPORT code of its own, ALIAS a variant. */
#define IMPL(name, ...) \
	CUresult impl_##name(__VA_ARGS__); \
	__attribute__((visibility("hidden"), used)) CUresult impl_##name(__VA_ARGS__)
#define EXPORT(name, ...) THUNK(name, name) IMPL(name, __VA_ARGS__)
#define ALIAS(name, of) THUNK(name, of)
#define NOTHING(name) THUNK(name, nothing)

IMPL(nothing, void) { return CUDA_SUCCESS; }

static struct stream *on(CUstream s) { return stream_of(s); }

static CUresult launch(CUfunction f, unsigned gx, CUstream s)
{
	static int instant = -1;

	if (!f)
		return INVALID_HANDLE;
	if (instant < 0)
		instant = getenv("STUB_INSTANT") != NULL;
	if (!instant)
		stream_give(on(s), (struct work){ f->name, gx * 1000ULL });
	return CUDA_SUCCESS;
}

EXPORT(cuLaunchKernel, CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra)
{
	(void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)params, (void)extra;
	return launch(f, gx, s);
}
ALIAS(cuLaunchKernel_ptsz, cuLaunchKernel)
ALIAS(cuLaunchCooperativeKernel, cuLaunchKernel)
ALIAS(cuLaunchCooperativeKernel_ptsz, cuLaunchKernel)
EXPORT(cuLaunchKernelEx, const CUlaunchConfig *c, CUfunction f) { return launch(f, c->gridDimX, c->hStream); }
ALIAS(cuLaunchKernelEx_ptsz, cuLaunchKernelEx)
EXPORT(cuLaunchCooperativeKernelMultiDevice, CUDA_LAUNCH_PARAMS *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		launch(list[i].function, list[i].gridDimX, list[i].hStream);
	return CUDA_SUCCESS;
}
EXPORT(cuLaunch, CUfunction f) { return launch(f, 1, 0); }
EXPORT(cuLaunchGrid, CUfunction f, int gx) { return launch(f, gx, 0); }
EXPORT(cuLaunchGridAsync, CUfunction f, int gx, int gy, CUstream s) { (void)gy; return launch(f, gx, s); }
NOTHING(cuLaunchHostFunc)
NOTHING(cuLaunchHostFunc_ptsz)
NOTHING(cuStreamAddCallback)
NOTHING(cuStreamAddCallback_ptsz)
EXPORT(cuGraphLaunch, CUgraphExec e, CUstream s) { graph_give((struct graph *)e, on(s)); return CUDA_SUCCESS; }
ALIAS(cuGraphLaunch_ptsz, cuGraphLaunch)

static CUresult copy(const char *name, size_t n, CUstream s, bool wait)
{
	stream_give(on(s), (struct work){ name, n });
	if (wait)
		stream_wait(on(s));
	return CUDA_SUCCESS;
}

#define COPIES(name, blocks) \
	EXPORT(name, uint64_t dst, uint64_t src, unsigned n) { (void)dst, (void)src; return copy(#name, n, 0, blocks); } \
	EXPORT(name##_v2, uint64_t dst, uint64_t src, size_t n) { (void)dst, (void)src; return copy(#name, n, 0, blocks); } \
	ALIAS(name##_v2_ptds, name##_v2) \
	EXPORT(name##Async, uint64_t dst, uint64_t src, unsigned n, CUstream s) { (void)dst, (void)src; return copy(#name "Async", n, s, false); } \
	EXPORT(name##Async_v2, uint64_t dst, uint64_t src, size_t n, CUstream s) { (void)dst, (void)src; return copy(#name "Async", n, s, false); } \
	ALIAS(name##Async_v2_ptsz, name##Async_v2)
COPIES(cuMemcpyHtoD, false)
COPIES(cuMemcpyDtoH, true)
COPIES(cuMemcpyDtoD, false)
EXPORT(cuMemcpy, CUdeviceptr dst, CUdeviceptr src, size_t n) { (void)dst, (void)src; return copy("cuMemcpy", n, 0, true); }
ALIAS(cuMemcpy_ptds, cuMemcpy)
EXPORT(cuMemcpyAsync, CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s) { (void)dst, (void)src; return copy("cuMemcpyAsync", n, s, false); }
ALIAS(cuMemcpyAsync_ptsz, cuMemcpyAsync)
EXPORT(cuMemcpyPeerAsync, CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n, CUstream s)
{
	(void)dst, (void)dc, (void)src, (void)sc;
	return copy("cuMemcpyPeerAsync", n, s, false);
}
ALIAS(cuMemcpyPeerAsync_ptsz, cuMemcpyPeerAsync)
NOTHING(cuMemcpyPeer) NOTHING(cuMemcpyPeer_ptds)
NOTHING(cuMemcpyHtoA) NOTHING(cuMemcpyHtoA_v2) NOTHING(cuMemcpyHtoA_v2_ptds)
NOTHING(cuMemcpyAtoH) NOTHING(cuMemcpyAtoH_v2) NOTHING(cuMemcpyAtoH_v2_ptds)
NOTHING(cuMemcpyDtoA) NOTHING(cuMemcpyDtoA_v2) NOTHING(cuMemcpyDtoA_v2_ptds)
NOTHING(cuMemcpyAtoD) NOTHING(cuMemcpyAtoD_v2) NOTHING(cuMemcpyAtoD_v2_ptds)
NOTHING(cuMemcpyAtoA) NOTHING(cuMemcpyAtoA_v2) NOTHING(cuMemcpyAtoA_v2_ptds)
NOTHING(cuMemcpyHtoAAsync) NOTHING(cuMemcpyAtoHAsync)
NOTHING(cuMemcpyHtoAAsync_v2) NOTHING(cuMemcpyHtoAAsync_v2_ptsz)
NOTHING(cuMemcpyAtoHAsync_v2) NOTHING(cuMemcpyAtoHAsync_v2_ptsz)
#define STRUCT_COPIES(name) \
	NOTHING(name) NOTHING(name##_v2) NOTHING(name##_v2_ptds) \
	NOTHING(name##Async) NOTHING(name##Async_v2) NOTHING(name##Async_v2_ptsz)
STRUCT_COPIES(cuMemcpy2D)
STRUCT_COPIES(cuMemcpy3D)
NOTHING(cuMemcpy2DUnaligned) NOTHING(cuMemcpy2DUnaligned_v2) NOTHING(cuMemcpy2DUnaligned_v2_ptds)
NOTHING(cuMemcpy3DPeer) NOTHING(cuMemcpy3DPeer_ptds) NOTHING(cuMemcpy3DPeerAsync) NOTHING(cuMemcpy3DPeerAsync_ptsz)
NOTHING(cuMemPrefetchAsync) NOTHING(cuMemPrefetchAsync_ptsz)
NOTHING(cuMemPrefetchAsync_v2) NOTHING(cuMemPrefetchAsync_v2_ptsz)
#define SETS(type) \
	NOTHING(cuMemset##type) NOTHING(cuMemset##type##_v2) NOTHING(cuMemset##type##_v2_ptds) \
	NOTHING(cuMemset##type##Async) NOTHING(cuMemset##type##Async_ptsz) \
	NOTHING(cuMemsetD2##type) NOTHING(cuMemsetD2##type##_v2) NOTHING(cuMemsetD2##type##_v2_ptds) \
	NOTHING(cuMemsetD2##type##Async) NOTHING(cuMemsetD2##type##Async_ptsz)
SETS(D8)
SETS(D16)
SETS(D32)

static CUresult allocate(uint64_t *p, size_t n)
{
	if (n >= STUB_TOO_MUCH)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!p || !n)
		return CUDA_ERROR_INVALID_VALUE;
	*p = fresh();
	return CUDA_SUCCESS;
}

EXPORT(cuMemAlloc, CUdeviceptr_v1 *p, unsigned n) { (void)n; *p = (CUdeviceptr_v1)fresh(); return CUDA_SUCCESS; }
EXPORT(cuMemAlloc_v2, CUdeviceptr *p, size_t n) { return allocate(p, n); }
ALIAS(cuMemAllocManaged, cuMemAlloc_v2)
ALIAS(cuMemAllocHost, cuMemAlloc_v2)
ALIAS(cuMemAllocHost_v2, cuMemAlloc_v2)
ALIAS(cuMemHostAlloc, cuMemAlloc_v2)
ALIAS(cuMemAllocAsync, cuMemAlloc_v2)
ALIAS(cuMemAllocAsync_ptsz, cuMemAlloc_v2)
ALIAS(cuMemAllocFromPoolAsync, cuMemAlloc_v2)
ALIAS(cuMemAllocFromPoolAsync_ptsz, cuMemAlloc_v2)
ALIAS(cuMemCreate, cuMemAlloc_v2)
ALIAS(cuMemAddressReserve, cuMemAlloc_v2)
EXPORT(cuMemAllocPitch, CUdeviceptr_v1 *p, unsigned *pitch, unsigned w)
{
	*p = (CUdeviceptr_v1)fresh();
	*pitch = (w + 511) & ~511U;
	return CUDA_SUCCESS;
}
EXPORT(cuMemAllocPitch_v2, CUdeviceptr *p, size_t *pitch, size_t w)
{
	*pitch = (w + 511) & ~(size_t)511;
	return allocate(p, *pitch);
}
NOTHING(cuMemFree) NOTHING(cuMemFree_v2) NOTHING(cuMemFreeHost) NOTHING(cuMemFreeAsync) NOTHING(cuMemFreeAsync_ptsz)
NOTHING(cuMemRelease) NOTHING(cuMemMap) NOTHING(cuMemUnmap) NOTHING(cuMemSetAccess) NOTHING(cuMemAddressFree)
NOTHING(cuMemHostRegister) NOTHING(cuMemHostRegister_v2) NOTHING(cuMemHostUnregister)

EXPORT(cuStreamSynchronize, CUstream s)
{
	if (stream_capturing(on(s))) {
		stream_break_capture(on(s));
		return CAPTURE_UNSUPPORTED;
	}
	stream_wait(on(s));
	return CUDA_SUCCESS;
}
ALIAS(cuStreamSynchronize_ptsz, cuStreamSynchronize)
EXPORT(cuEventSynchronize, CUevent e) { event_wait((struct event *)e); return CUDA_SUCCESS; }
EXPORT(cuCtxSynchronize, void) { device_wait(); return CUDA_SUCCESS; }
ALIAS(cuCtxSynchronize_v2, cuCtxSynchronize)
EXPORT(cuStreamQuery, CUstream s) { return stream_idle(on(s)) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }
ALIAS(cuStreamQuery_ptsz, cuStreamQuery)
EXPORT(cuEventQuery, CUevent e) { return event_passed((struct event *)e) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY; }
EXPORT(cuEventCreate, CUevent *e) { *e = (CUevent)event_new(); return CUDA_SUCCESS; }
NOTHING(cuEventDestroy) NOTHING(cuEventDestroy_v2)
EXPORT(cuEventRecord, CUevent e, CUstream s) { event_record((struct event *)e, on(s)); return CUDA_SUCCESS; }
ALIAS(cuEventRecord_ptsz, cuEventRecord)
ALIAS(cuEventRecordWithFlags, cuEventRecord)
ALIAS(cuEventRecordWithFlags_ptsz, cuEventRecord)
EXPORT(cuEventElapsedTime, float *ms, CUevent from, CUevent to)
{
	*ms = event_elapsed_ms((struct event *)from, (struct event *)to);
	return CUDA_SUCCESS;
}
ALIAS(cuEventElapsedTime_v2, cuEventElapsedTime)
EXPORT(cuStreamWaitEvent, CUstream s, CUevent e) { stream_join(on(s), (struct event *)e); return CUDA_SUCCESS; }
ALIAS(cuStreamWaitEvent_ptsz, cuStreamWaitEvent)

/* As the driver does: who is named there is loaded and begun, once. */
EXPORT(cuInit, unsigned flags)
{
	static void *library;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*begin)(void);

	(void)flags;
	if (path && !library && (library = dlopen(path, RTLD_NOW)) && (begin = (int (*)(void))dlsym(library, "InitializeInjection")))
		begin();
	return CUDA_SUCCESS;
}
EXPORT(cuModuleLoad, CUmodule *m) { *m = calloc(1, sizeof(**m)); return CUDA_SUCCESS; }
ALIAS(cuModuleLoadData, cuModuleLoad)
ALIAS(cuModuleLoadDataEx, cuModuleLoad)
ALIAS(cuModuleLoadFatBinary, cuModuleLoad)
ALIAS(cuLibraryLoadData, cuModuleLoad)
ALIAS(cuLibraryLoadFromFile, cuModuleLoad)
NOTHING(cuModuleUnload) NOTHING(cuLibraryUnload)
static CUfunction function(const char *name)
{
	CUfunction f = calloc(1, 256);

	*f = (struct CUfunc_st){ .kind = 1, .name = strdup(name) };
	return f;
}
EXPORT(cuModuleGetFunction, CUfunction *f, CUmodule m, const char *name)
{
	(void)m;
	if (strcmp(name, "missing") == 0)
		return 500; /* CUDA_ERROR_NOT_FOUND */
	*f = function(name);
	return CUDA_SUCCESS;
}
EXPORT(cuLibraryGetKernel, CUkernel *k, CUlibrary l, const char *name)
{
	(void)l;
	*k = calloc(1, 256);
	**k = (struct CUkern_st){ .kind = 2, .name = strdup(name), .function = function(name) };
	return CUDA_SUCCESS;
}
EXPORT(cuLibraryGetModule, CUmodule *m, CUlibrary l) { *m = (CUmodule)l; return CUDA_SUCCESS; }
NOTHING(cuLibraryEnumerateKernels)
EXPORT(cuKernelGetFunction, CUfunction *f, CUkernel k) { *f = k->function; return CUDA_SUCCESS; }
EXPORT(cuFuncGetName, const char **name, CUfunction f) { *name = f->name; return CUDA_SUCCESS; }
ALIAS(cuKernelGetName, cuFuncGetName)

/* What the static runtime takes its entry points from. It hands out the exported
 * thunks: those of the newest layout that the version has. */
EXPORT(cuGetProcAddress, const char *symbol, void **fn, int version, uint64_t flags)
{
	static const char *const suffixes[] = { "_v2_ptsz", "_v2_ptds", "_ptsz", "_ptds", "_v2", "" };
	char name[128];

	for (unsigned i = flags & 2 ? 0 : 4; i < 6; i++) {
		if (version < 3020 && strstr(suffixes[i], "_v2"))
			continue;
		snprintf(name, sizeof(name), "%s%s", symbol, suffixes[i]);
		if ((*fn = dlsym(RTLD_DEFAULT, name)))
			return CUDA_SUCCESS;
	}
	return 500;
}
ALIAS(cuGetProcAddress_v2, cuGetProcAddress)

static void push(CUcontext c) { current[depth++ & 15] = c; }
static CUresult context(CUcontext *c, CUdevice d)
{
	*c = calloc(1, sizeof(**c));
	(*c)->device = d;
	return CUDA_SUCCESS;
}
EXPORT(cuCtxCreate, CUcontext *c, unsigned flags, CUdevice d) { (void)flags; context(c, d); push(*c); return CUDA_SUCCESS; }
ALIAS(cuCtxCreate_v2, cuCtxCreate)
EXPORT(cuCtxCreate_v3, CUcontext *c, void *p, int n, unsigned flags, CUdevice d) { (void)p, (void)n, (void)flags; context(c, d); push(*c); return CUDA_SUCCESS; }
EXPORT(cuCtxCreate_v4, CUcontext *c, void *p, unsigned flags, CUdevice d) { (void)p, (void)flags; context(c, d); push(*c); return CUDA_SUCCESS; }
NOTHING(cuCtxDestroy) NOTHING(cuCtxDestroy_v2)
EXPORT(cuCtxSetCurrent, CUcontext c)
{
	if (depth)
		depth--;
	if (c)
		push(c);
	return CUDA_SUCCESS;
}
EXPORT(cuCtxPushCurrent, CUcontext c) { push(c); return CUDA_SUCCESS; }
ALIAS(cuCtxPushCurrent_v2, cuCtxPushCurrent)
EXPORT(cuCtxPopCurrent, CUcontext *c)
{
	if (!depth)
		return 201; /* CUDA_ERROR_INVALID_CONTEXT */
	depth--;
	if (c)
		*c = current[depth & 15];
	return CUDA_SUCCESS;
}
ALIAS(cuCtxPopCurrent_v2, cuCtxPopCurrent)
EXPORT(cuCtxGetDevice, CUdevice *d)
{
	if (!depth)
		return 201;
	*d = current[(depth - 1) & 15]->device;
	return CUDA_SUCCESS;
}
EXPORT(cuDevicePrimaryCtxRetain, CUcontext *c, CUdevice d)
{
	static CUcontext primary[8];

	if (!primary[d & 7])
		context(&primary[d & 7], d);
	*c = primary[d & 7];
	return CUDA_SUCCESS;
}
NOTHING(cuDevicePrimaryCtxRelease) NOTHING(cuDevicePrimaryCtxRelease_v2)
NOTHING(cuDevicePrimaryCtxReset) NOTHING(cuDevicePrimaryCtxReset_v2)

EXPORT(cuStreamCreate, CUstream *s) { *s = (CUstream)stream_new(); return CUDA_SUCCESS; }
ALIAS(cuStreamCreateWithPriority, cuStreamCreate)
EXPORT(cuStreamDestroy, CUstream s) { stream_free(on(s)); return CUDA_SUCCESS; }
ALIAS(cuStreamDestroy_v2, cuStreamDestroy)
EXPORT(cuStreamBeginCapture, CUstream s) { stream_capture(on(s)); return CUDA_SUCCESS; }
ALIAS(cuStreamBeginCapture_ptsz, cuStreamBeginCapture)
ALIAS(cuStreamBeginCapture_v2, cuStreamBeginCapture)
ALIAS(cuStreamBeginCapture_v2_ptsz, cuStreamBeginCapture)
EXPORT(cuStreamBeginCaptureToGraph, CUstream s, CUgraph g) { stream_capture_into(on(s), (struct graph *)g); return CUDA_SUCCESS; }
ALIAS(cuStreamBeginCaptureToGraph_ptsz, cuStreamBeginCaptureToGraph)
EXPORT(cuStreamEndCapture, CUstream s, CUgraph *g)
{
	*g = (CUgraph)stream_end_capture(on(s));
	return *g ? CUDA_SUCCESS : CAPTURE_INVALIDATED;
}
ALIAS(cuStreamEndCapture_ptsz, cuStreamEndCapture)

EXPORT(cuGraphCreate, CUgraph *g) { *g = (CUgraph)graph_new(); return CUDA_SUCCESS; }
NOTHING(cuGraphDestroy) NOTHING(cuGraphExecUpdate) NOTHING(cuGraphExecUpdate_v2) NOTHING(cuGraphExecDestroy)
EXPORT(cuGraphInstantiate, CUgraphExec *e, CUgraph g) { *e = (CUgraphExec)graph_copy((struct graph *)g); return CUDA_SUCCESS; }
ALIAS(cuGraphInstantiate_v2, cuGraphInstantiate)
ALIAS(cuGraphInstantiateWithFlags, cuGraphInstantiate)
ALIAS(cuGraphInstantiateWithParams, cuGraphInstantiate)
ALIAS(cuGraphInstantiateWithParams_ptsz, cuGraphInstantiate)
EXPORT(cuGraphAddKernelNode, CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_KERNEL_NODE_PARAMS *p)
{
	(void)d, (void)nd;
	*n = (CUgraphNode)fresh();
	graph_add((struct graph *)g, (struct work){ p->func->name, p->gridDimX * 1000ULL });
	return CUDA_SUCCESS;
}
ALIAS(cuGraphAddKernelNode_v2, cuGraphAddKernelNode)

static CUresult node(CUgraphNode *n) { *n = (CUgraphNode)fresh(); return CUDA_SUCCESS; }
EXPORT(cuGraphClone, CUgraph *clone, CUgraph original) { *clone = (CUgraph)graph_copy((struct graph *)original); return CUDA_SUCCESS; }
NOTHING(cuGraphDestroyNode)
EXPORT(cuGraphAddEmptyNode, CUgraphNode *n) { return node(n); }
ALIAS(cuGraphAddHostNode, cuGraphAddEmptyNode)
ALIAS(cuGraphAddEventRecordNode, cuGraphAddEmptyNode)
ALIAS(cuGraphAddEventWaitNode, cuGraphAddEmptyNode)
ALIAS(cuGraphAddExternalSemaphoresSignalNode, cuGraphAddEmptyNode)
ALIAS(cuGraphAddExternalSemaphoresWaitNode, cuGraphAddEmptyNode)
ALIAS(cuGraphAddBatchMemOpNode, cuGraphAddEmptyNode)
ALIAS(cuGraphAddMemFreeNode, cuGraphAddEmptyNode)
EXPORT(cuGraphAddMemcpyNode, CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_MEMCPY3D *p)
{
	(void)d, (void)nd;
	graph_add((struct graph *)g, (struct work){ "memcpy node", p->WidthInBytes * p->Height * p->Depth });
	return node(n);
}
EXPORT(cuGraphAddMemsetNode, CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_MEMSET_NODE_PARAMS *p)
{
	(void)d, (void)nd;
	graph_add((struct graph *)g, (struct work){ "memset node", p->width * p->height * p->elementSize });
	return node(n);
}
EXPORT(cuGraphAddChildGraphNode, CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUgraph child)
{
	(void)d, (void)nd;
	graph_include((struct graph *)g, (struct graph *)child);
	return node(n);
}
EXPORT(cuGraphAddMemAllocNode, CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUDA_MEM_ALLOC_NODE_PARAMS *p)
{
	(void)g, (void)d, (void)nd;
	p->dptr = fresh();
	return node(n);
}
EXPORT(cuGraphConditionalHandleCreate, CUgraphConditionalHandle *h) { *h = fresh(); return CUDA_SUCCESS; }

/* On a real device kernels decide what a conditional node runs. Here "if" runs
 * nothing, "while" its body three times, "switch" its second body. */
static void conditional_node(struct graph *g, CUDA_CONDITIONAL_NODE_PARAMS *p)
{
	p->phGraph_out = calloc(p->size, sizeof(CUgraph));
	for (unsigned n = 0; n < p->size; n++) {
		struct graph *body = graph_new();
		unsigned times = p->type == CU_GRAPH_COND_TYPE_WHILE ? 3 : p->type == CU_GRAPH_COND_TYPE_SWITCH && n == 1;

		p->phGraph_out[n] = (CUgraph)body;
		graph_add_body(g, body, times);
	}
}

static CUresult any_node(CUgraphNode *n, struct graph *g, CUgraphNodeParams *p)
{
	switch (p->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		graph_add(g, (struct work){ p->kernel.func->name, p->kernel.gridDimX * 1000ULL });
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		graph_include(g, (struct graph *)p->graph.graph);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		p->alloc.dptr = fresh();
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		conditional_node(g, &p->conditional);
		break;
	}
	return node(n);
}
EXPORT(cuGraphAddNode, CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUgraphNodeParams *p)
{
	(void)d, (void)nd;
	return any_node(n, (struct graph *)g, p);
}
EXPORT(cuGraphAddNode_v2, CUgraphNode *n, CUgraph g, const CUgraphNode *d, const void *edges, size_t nd, CUgraphNodeParams *p)
{
	(void)d, (void)edges, (void)nd;
	return any_node(n, (struct graph *)g, p);
}

#ifdef NEWER
ALIAS(cuLaunchKernelEx_v2, cuLaunchKernelEx)
ALIAS(cuLaunchKernelEx_v2_ptsz, cuLaunchKernelEx)
ALIAS(cuMemAlloc_v3, cuMemAlloc_v2)
ALIAS(cuSomethingNew, cuLaunch)
#endif
