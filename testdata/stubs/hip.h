/* The part of HIP's interface that the catalog names, written from its public
 * manual. For the stub and for the program that calls it. */
#ifndef STUB_HIP_H
#define STUB_HIP_H

#include <stddef.h>
#include <stdint.h>

typedef int hipError_t, hipDevice_t;
typedef struct { uint32_t x, y, z; } dim3;
typedef void *hipDeviceptr_t;
typedef struct ihipCtx_t *hipCtx_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;

typedef struct {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	hipStream_t stream;
	void *attrs;
	unsigned numAttrs;
} hipLaunchConfig_t;

typedef struct {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	hipStream_t hStream;
	void *attrs;
	unsigned numAttrs;
} HIP_LAUNCH_CONFIG;

typedef struct { void *ptr; size_t pitch, xsize, ysize; } hipPitchedPtr;
typedef struct {
	void *srcArray;
	size_t srcPos[3];
	hipPitchedPtr srcPtr;
	void *dstArray;
	size_t dstPos[3];
	hipPitchedPtr dstPtr;
	struct { size_t width, height, depth; } extent;
	int kind;
} hipMemcpy3DParms;
typedef struct {
	void *dst;
	unsigned elementSize;
	size_t height, pitch;
	unsigned value;
	size_t width;
} hipMemsetParams;
typedef struct {
	struct {
		int allocType, handleTypes;
		struct { int type, id; } location;
		unsigned char more[72];
	} poolProps;
	const void *accessDescs;
	size_t accessDescCount, bytesize;
	void *dptr;
} hipMemAllocNodeParams;

typedef struct {
	size_t srcXInBytes, srcY;
	unsigned srcMemoryType;
	const void *srcHost;
	void *srcDevice, *srcArray;
	size_t srcPitch, dstXInBytes, dstY;
	unsigned dstMemoryType;
	void *dstHost, *dstDevice, *dstArray;
	size_t dstPitch, WidthInBytes, Height;
} hip_Memcpy2D;

typedef struct {
	int type, requestedHandleTypes;
	struct { int type, id; } location;
	void *win32HandleMetaData;
	uint64_t allocFlags;
} hipMemAllocationProp;

typedef struct {
	dim3 blockDim;
	void **extra, *func;
	dim3 gridDim;
	void **kernelParams;
	unsigned sharedMemBytes;
} hipKernelNodeParams;

#define WITH_SPT(F, name, arguments) F(name, arguments) F(name##_spt, arguments)
#define HOST_LAUNCH (const void *f, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t s)
#define MODULE_LAUNCH_10 hipFunction_t f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, hipStream_t s, void **params

typedef struct {
	int type, reserved[3];
	union {
		long long space[29];
		hipKernelNodeParams kernel;
		hipMemsetParams memset;
		struct { hipGraph_t graph; } graph;
		hipMemAllocNodeParams alloc;
		struct { void *dptr; } free;
	};
} hipGraphNodeParams;

#define HIP_FUNCTIONS(F) \
	WITH_SPT(F, hipLaunchKernel, HOST_LAUNCH) \
	F(hipLaunchCooperativeKernel, (const void *f, dim3 grid, dim3 block, void **args, unsigned shared, hipStream_t s)) \
	F(hipLaunchCooperativeKernel_spt, (const void *f, dim3 grid, dim3 block, void **args, unsigned shared, hipStream_t s)) \
	F(hipExtLaunchKernel, (const void *f, dim3 grid, dim3 block, void **args, size_t shared, hipStream_t s, hipEvent_t a, hipEvent_t b, int flags)) \
	F(hipLaunchKernelExC, (const hipLaunchConfig_t *c, const void *f, void **args)) \
	F(hipDrvLaunchKernelEx, (const HIP_LAUNCH_CONFIG *c, hipFunction_t f, void **params, void **extra)) \
	F(hipModuleLaunchKernel, (MODULE_LAUNCH_10, void **extra)) \
	F(hipModuleLaunchCooperativeKernel, (MODULE_LAUNCH_10)) \
	F(hipExtModuleLaunchKernel, (MODULE_LAUNCH_10, void **extra, hipEvent_t a, hipEvent_t b, uint32_t flags)) \
	F(hipHccModuleLaunchKernel, (MODULE_LAUNCH_10, void **extra, hipEvent_t a, hipEvent_t b)) \
	F(hipLaunchByPtr, (const void *f)) \
	WITH_SPT(F, hipLaunchHostFunc, (hipStream_t s, void (*fn)(void *), void *data)) \
	WITH_SPT(F, hipStreamAddCallback, (hipStream_t s, void *fn, void *data, unsigned flags)) \
	WITH_SPT(F, hipGraphLaunch, (hipGraphExec_t e, hipStream_t s)) \
	WITH_SPT(F, hipMemcpy, (void *dst, const void *src, size_t n, int kind)) \
	WITH_SPT(F, hipMemcpyAsync, (void *dst, const void *src, size_t n, int kind, hipStream_t s)) \
	F(hipMemcpyWithStream, (void *dst, const void *src, size_t n, int kind, hipStream_t s)) \
	F(hipMemcpyHtoD, (void *dst, const void *src, size_t n)) \
	F(hipMemcpyDtoH, (void *dst, const void *src, size_t n)) \
	F(hipMemcpyDtoD, (void *dst, const void *src, size_t n)) \
	F(hipMemcpyHtoDAsync, (void *dst, const void *src, size_t n, hipStream_t s)) \
	F(hipMemcpyDtoHAsync, (void *dst, const void *src, size_t n, hipStream_t s)) \
	F(hipMemcpyDtoDAsync, (void *dst, const void *src, size_t n, hipStream_t s)) \
	F(hipMemcpyPeer, (void *dst, int dd, const void *src, int sd, size_t n)) \
	F(hipMemcpyPeerAsync, (void *dst, int dd, const void *src, int sd, size_t n, hipStream_t s)) \
	WITH_SPT(F, hipMemcpy2D, (void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t h, int kind)) \
	WITH_SPT(F, hipMemcpy2DAsync, (void *dst, size_t dp, const void *src, size_t sp, size_t w, size_t h, int kind, hipStream_t s)) \
	WITH_SPT(F, hipMemcpy3D, (const hipMemcpy3DParms *p)) \
	WITH_SPT(F, hipMemcpy3DAsync, (const hipMemcpy3DParms *p, hipStream_t s)) \
	F(hipMemcpyParam2D, (const hip_Memcpy2D *c)) \
	F(hipMemcpyParam2DAsync, (const hip_Memcpy2D *c, hipStream_t s)) \
	WITH_SPT(F, hipMemcpyToSymbol, (const void *symbol, const void *src, size_t n, size_t at, int kind)) \
	WITH_SPT(F, hipMemcpyFromSymbol, (void *dst, const void *symbol, size_t n, size_t at, int kind)) \
	WITH_SPT(F, hipMemcpyToSymbolAsync, (const void *symbol, const void *src, size_t n, size_t at, int kind, hipStream_t s)) \
	WITH_SPT(F, hipMemcpyFromSymbolAsync, (void *dst, const void *symbol, size_t n, size_t at, int kind, hipStream_t s)) \
	F(hipMemPrefetchAsync, (const void *p, size_t n, int device, hipStream_t s)) \
	WITH_SPT(F, hipMemset, (void *p, int v, size_t n)) \
	WITH_SPT(F, hipMemsetAsync, (void *p, int v, size_t n, hipStream_t s)) \
	F(hipMemsetD8, (void *p, unsigned char v, size_t n)) \
	F(hipMemsetD16, (void *p, unsigned short v, size_t n)) \
	F(hipMemsetD32, (void *p, int v, size_t n)) \
	F(hipMemsetD8Async, (void *p, unsigned char v, size_t n, hipStream_t s)) \
	F(hipMemsetD16Async, (void *p, unsigned short v, size_t n, hipStream_t s)) \
	F(hipMemsetD32Async, (void *p, int v, size_t n, hipStream_t s)) \
	WITH_SPT(F, hipMemset2D, (void *p, size_t pitch, int v, size_t w, size_t h)) \
	WITH_SPT(F, hipMemset2DAsync, (void *p, size_t pitch, int v, size_t w, size_t h, hipStream_t s)) \
	F(hipMalloc, (void **p, size_t n)) \
	F(hipExtMallocWithFlags, (void **p, size_t n, unsigned flags)) \
	F(hipMallocAsync, (void **p, size_t n, hipStream_t s)) \
	F(hipMallocFromPoolAsync, (void **p, size_t n, void *pool, hipStream_t s)) \
	F(hipMallocPitch, (void **p, size_t *pitch, size_t w, size_t h)) \
	F(hipMemAllocPitch, (void **p, size_t *pitch, size_t w, size_t h, unsigned e)) \
	F(hipMallocManaged, (void **p, size_t n, unsigned flags)) \
	F(hipHostMalloc, (void **p, size_t n, unsigned flags)) \
	F(hipHostAlloc, (void **p, size_t n, unsigned flags)) \
	F(hipMallocHost, (void **p, size_t n)) \
	F(hipMemAllocHost, (void **p, size_t n)) \
	F(hipFree, (void *p)) \
	F(hipFreeAsync, (void *p, hipStream_t s)) \
	F(hipHostFree, (void *p)) \
	F(hipFreeHost, (void *p)) \
	F(hipMemCreate, (void **h, size_t n, const hipMemAllocationProp *prop, uint64_t flags)) \
	F(hipMemRelease, (void *h)) \
	F(hipMemMap, (void *p, size_t n, size_t at, void *h, uint64_t flags)) \
	F(hipMemUnmap, (void *p, size_t n)) \
	F(hipMemSetAccess, (void *p, size_t n, const void *desc, size_t count)) \
	F(hipMemAddressReserve, (void **p, size_t n, size_t align, void *at, uint64_t flags)) \
	F(hipMemAddressFree, (void *p, size_t n)) \
	F(hipHostRegister, (void *p, size_t n, unsigned flags)) \
	F(hipHostUnregister, (void *p)) \
	WITH_SPT(F, hipStreamSynchronize, (hipStream_t s)) \
	F(hipEventSynchronize, (hipEvent_t e)) \
	F(hipDeviceSynchronize, (void)) \
	F(hipCtxSynchronize, (void)) \
	WITH_SPT(F, hipStreamQuery, (hipStream_t s)) \
	F(hipEventQuery, (hipEvent_t e)) \
	F(hipEventCreate, (hipEvent_t *e)) \
	F(hipEventCreateWithFlags, (hipEvent_t *e, unsigned flags)) \
	F(hipEventDestroy, (hipEvent_t e)) \
	WITH_SPT(F, hipEventRecord, (hipEvent_t e, hipStream_t s)) \
	F(hipEventRecordWithFlags, (hipEvent_t e, hipStream_t s, unsigned flags)) \
	F(hipEventElapsedTime, (float *ms, hipEvent_t a, hipEvent_t b)) \
	WITH_SPT(F, hipStreamWaitEvent, (hipStream_t s, hipEvent_t e, unsigned flags)) \
	F(hipInit, (unsigned flags)) \
	F(hipModuleLoad, (hipModule_t *m, const char *file)) \
	F(hipModuleLoadData, (hipModule_t *m, const void *image)) \
	F(hipModuleLoadDataEx, (hipModule_t *m, const void *image, unsigned n, int *options, void **values)) \
	F(hipModuleUnload, (hipModule_t m)) \
	F(hipModuleGetFunction, (hipFunction_t *f, hipModule_t m, const char *name)) \
	F(hipSetDevice, (int device)) \
	F(hipCtxCreate, (hipCtx_t *c, unsigned flags, int device)) \
	F(hipCtxDestroy, (hipCtx_t c)) \
	F(hipCtxSetCurrent, (hipCtx_t c)) \
	F(hipCtxPushCurrent, (hipCtx_t c)) \
	F(hipCtxPopCurrent, (hipCtx_t *c)) \
	F(hipDevicePrimaryCtxRetain, (hipCtx_t *c, int device)) \
	F(hipStreamCreate, (hipStream_t *s)) \
	F(hipStreamCreateWithFlags, (hipStream_t *s, unsigned flags)) \
	F(hipStreamCreateWithPriority, (hipStream_t *s, unsigned flags, int priority)) \
	F(hipExtStreamCreateWithCUMask, (hipStream_t *s, uint32_t n, const uint32_t *mask)) \
	F(hipStreamDestroy, (hipStream_t s)) \
	WITH_SPT(F, hipStreamBeginCapture, (hipStream_t s, int mode)) \
	WITH_SPT(F, hipStreamEndCapture, (hipStream_t s, hipGraph_t *g)) \
	F(hipGraphCreate, (hipGraph_t *g, unsigned flags)) \
	F(hipGraphDestroy, (hipGraph_t g)) \
	F(hipGraphInstantiate, (hipGraphExec_t *e, hipGraph_t g, hipGraphNode_t *n, char *log, size_t size)) \
	F(hipGraphInstantiateWithFlags, (hipGraphExec_t *e, hipGraph_t g, unsigned long long flags)) \
	F(hipGraphInstantiateWithParams, (hipGraphExec_t *e, hipGraph_t g, void *params)) \
	F(hipGraphExecUpdate, (hipGraphExec_t e, hipGraph_t g, hipGraphNode_t *n, int *result)) \
	F(hipGraphExecDestroy, (hipGraphExec_t e)) \
	F(hipGraphAddKernelNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const hipKernelNodeParams *p)) \
	F(hipGraphClone, (hipGraph_t *clone, hipGraph_t original)) \
	F(hipGraphDestroyNode, (hipGraphNode_t n)) \
	F(hipGraphAddMemcpyNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const hipMemcpy3DParms *p)) \
	F(hipGraphAddMemcpyNode1D, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, void *dst, const void *src, size_t bytes, int kind)) \
	F(hipGraphAddMemsetNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const hipMemsetParams *p)) \
	F(hipGraphAddHostNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, const void *p)) \
	F(hipGraphAddEmptyNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd)) \
	F(hipGraphAddChildGraphNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipGraph_t child)) \
	F(hipGraphAddEventRecordNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipEvent_t e)) \
	F(hipGraphAddEventWaitNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipEvent_t e)) \
	F(hipGraphAddMemAllocNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipMemAllocNodeParams *p)) \
	F(hipGraphAddMemFreeNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, void *p)) \
	F(hipGraphAddNode, (hipGraphNode_t *n, hipGraph_t g, const hipGraphNode_t *d, size_t nd, hipGraphNodeParams *p))

#define DECLARE(name, arguments) hipError_t name arguments;
HIP_FUNCTIONS(DECLARE)
#undef DECLARE
void __hipRegisterFunction(void **modules, const void *host, char *device, const char *name, unsigned threads, void *a, void *b, void *c, void *d, int *wsize);

#endif
