/* The part of the CUDA driver's interface that the catalog names, written from
 * its public manual: signatures and structs, with the old 32-bit layouts that
 * the unsuffixed names still have. For the stub and for the program that calls it. */
#ifndef STUB_CUDA_H
#define STUB_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef int CUresult, CUdevice;
typedef uint64_t CUdeviceptr;
typedef uint32_t CUdeviceptr_v1;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUarray_st *CUarray;
typedef struct CUmemPool_st *CUmemoryPool;
typedef uint64_t CUmemGenericAllocationHandle;

enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_READY = 600 };
enum { CU_MEMORYTYPE_HOST = 1, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_UNIFIED };

typedef struct {
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	void *attrs;
	unsigned numAttrs;
} CUlaunchConfig;

typedef struct {
	CUfunction function;
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	CUstream hStream;
	void **kernelParams;
} CUDA_LAUNCH_PARAMS;

typedef struct {
	CUfunction func;
	unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
	void **kernelParams, **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct {
	size_t srcXInBytes, srcY;
	unsigned srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch, dstXInBytes, dstY;
	unsigned dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct {
	unsigned srcXInBytes, srcY, srcMemoryType;
	const void *srcHost;
	CUdeviceptr_v1 srcDevice;
	CUarray srcArray;
	unsigned srcPitch, dstXInBytes, dstY, dstMemoryType;
	void *dstHost;
	CUdeviceptr_v1 dstDevice;
	CUarray dstArray;
	unsigned dstPitch, WidthInBytes, Height;
} CUDA_MEMCPY2D_v1;

typedef struct {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	unsigned srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *srcContext;
	size_t srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD;
	unsigned dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *dstContext;
	size_t dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct {
	unsigned srcXInBytes, srcY, srcZ, srcLOD, srcMemoryType;
	const void *srcHost;
	CUdeviceptr_v1 srcDevice;
	CUarray srcArray;
	void *reserved0;
	unsigned srcPitch, srcHeight, dstXInBytes, dstY, dstZ, dstLOD, dstMemoryType;
	void *dstHost;
	CUdeviceptr_v1 dstDevice;
	CUarray dstArray;
	void *reserved1;
	unsigned dstPitch, dstHeight, WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_v1;

typedef struct {
	CUdeviceptr dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct { int type, id; } CUmemLocation;
enum { CU_MEM_LOCATION_TYPE_DEVICE = 1, CU_MEM_LOCATION_TYPE_HOST = 2 };
typedef struct {
	int allocType, handleTypes;
	CUmemLocation location;
	unsigned char more[72];
} CUmemPoolProps;

typedef struct {
	CUmemPoolProps poolProps;
	const void *accessDescs;
	size_t accessDescCount, bytesize;
	CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef uint64_t CUgraphConditionalHandle;
enum { CU_GRAPH_COND_TYPE_IF, CU_GRAPH_COND_TYPE_WHILE, CU_GRAPH_COND_TYPE_SWITCH };
typedef struct {
	CUgraphConditionalHandle handle;
	int type;
	unsigned size;
	CUgraph *phGraph_out;
	CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;

typedef struct { void (*fn)(void *); void *userData; } CUDA_HOST_NODE_PARAMS;

/* CUgraphNodeParams: of what its union has, what is used here. */
enum {
	CU_GRAPH_NODE_TYPE_KERNEL = 0, CU_GRAPH_NODE_TYPE_MEMSET = 2, CU_GRAPH_NODE_TYPE_GRAPH = 4, CU_GRAPH_NODE_TYPE_EMPTY = 5,
	CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10, CU_GRAPH_NODE_TYPE_MEM_FREE = 11, CU_GRAPH_NODE_TYPE_CONDITIONAL = 13
};
typedef struct {
	int type, reserved0[3];
	union {
		long long reserved1[29];
		CUDA_KERNEL_NODE_PARAMS kernel;
		CUDA_MEMSET_NODE_PARAMS memset;
		struct { CUgraph graph; } graph;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
		struct { CUdeviceptr dptr; } free;
		CUDA_CONDITIONAL_NODE_PARAMS conditional;
	};
	long long reserved2;
} CUgraphNodeParams;

typedef struct {
	int type, requestedHandleTypes;
	CUmemLocation location;
	void *win32HandleMetaData;
	uint64_t allocFlags;
} CUmemAllocationProp;

/* Every function: result, variants that share the signature, arguments. */
#define CUDA_FUNCTIONS(F) \
	F(cuInit, (unsigned flags)) \
	F(cuLaunchKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra)) \
	F(cuLaunchKernel_ptsz, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params, void **extra)) \
	F(cuLaunchCooperativeKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params)) \
	F(cuLaunchCooperativeKernel_ptsz, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s, void **params)) \
	F(cuLaunchKernelEx, (const CUlaunchConfig *c, CUfunction f, void **params, void **extra)) \
	F(cuLaunchKernelEx_ptsz, (const CUlaunchConfig *c, CUfunction f, void **params, void **extra)) \
	F(cuLaunchCooperativeKernelMultiDevice, (CUDA_LAUNCH_PARAMS *list, unsigned n, unsigned flags)) \
	F(cuLaunch, (CUfunction f)) \
	F(cuLaunchGrid, (CUfunction f, int gx, int gy)) \
	F(cuLaunchGridAsync, (CUfunction f, int gx, int gy, CUstream s)) \
	F(cuLaunchHostFunc, (CUstream s, void (*fn)(void *), void *data)) \
	F(cuLaunchHostFunc_ptsz, (CUstream s, void (*fn)(void *), void *data)) \
	F(cuStreamAddCallback, (CUstream s, void *fn, void *data, unsigned flags)) \
	F(cuStreamAddCallback_ptsz, (CUstream s, void *fn, void *data, unsigned flags)) \
	F(cuGraphLaunch, (CUgraphExec e, CUstream s)) \
	F(cuGraphLaunch_ptsz, (CUgraphExec e, CUstream s)) \
	CUDA_COPIES(F, cuMemcpyHtoD) \
	CUDA_COPIES(F, cuMemcpyDtoH) \
	CUDA_COPIES(F, cuMemcpyDtoD) \
	F(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t n)) \
	F(cuMemcpy_ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n)) \
	F(cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)) \
	F(cuMemcpyAsync_ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream s)) \
	F(cuMemcpyPeer, (CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n)) \
	F(cuMemcpyPeer_ptds, (CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n)) \
	F(cuMemcpyPeerAsync, (CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n, CUstream s)) \
	F(cuMemcpyPeerAsync_ptsz, (CUdeviceptr dst, CUcontext dc, CUdeviceptr src, CUcontext sc, size_t n, CUstream s)) \
	F(cuMemcpyHtoA, (CUarray dst, unsigned at, const void *src, unsigned n)) \
	F(cuMemcpyHtoA_v2, (CUarray dst, size_t at, const void *src, size_t n)) \
	F(cuMemcpyHtoA_v2_ptds, (CUarray dst, size_t at, const void *src, size_t n)) \
	F(cuMemcpyAtoH, (void *dst, CUarray src, unsigned at, unsigned n)) \
	F(cuMemcpyAtoH_v2, (void *dst, CUarray src, size_t at, size_t n)) \
	F(cuMemcpyAtoH_v2_ptds, (void *dst, CUarray src, size_t at, size_t n)) \
	F(cuMemcpyDtoA, (CUarray dst, unsigned at, CUdeviceptr_v1 src, unsigned n)) \
	F(cuMemcpyDtoA_v2, (CUarray dst, size_t at, CUdeviceptr src, size_t n)) \
	F(cuMemcpyDtoA_v2_ptds, (CUarray dst, size_t at, CUdeviceptr src, size_t n)) \
	F(cuMemcpyAtoD, (CUdeviceptr_v1 dst, CUarray src, unsigned at, unsigned n)) \
	F(cuMemcpyAtoD_v2, (CUdeviceptr dst, CUarray src, size_t at, size_t n)) \
	F(cuMemcpyAtoD_v2_ptds, (CUdeviceptr dst, CUarray src, size_t at, size_t n)) \
	F(cuMemcpyAtoA, (CUarray dst, unsigned da, CUarray src, unsigned sa, unsigned n)) \
	F(cuMemcpyAtoA_v2, (CUarray dst, size_t da, CUarray src, size_t sa, size_t n)) \
	F(cuMemcpyAtoA_v2_ptds, (CUarray dst, size_t da, CUarray src, size_t sa, size_t n)) \
	F(cuMemcpyHtoAAsync, (CUarray dst, unsigned at, const void *src, unsigned n, CUstream s)) \
	F(cuMemcpyAtoHAsync, (void *dst, CUarray src, unsigned at, unsigned n, CUstream s)) \
	F(cuMemcpyHtoAAsync_v2, (CUarray dst, size_t at, const void *src, size_t n, CUstream s)) \
	F(cuMemcpyHtoAAsync_v2_ptsz, (CUarray dst, size_t at, const void *src, size_t n, CUstream s)) \
	F(cuMemcpyAtoHAsync_v2, (void *dst, CUarray src, size_t at, size_t n, CUstream s)) \
	F(cuMemcpyAtoHAsync_v2_ptsz, (void *dst, CUarray src, size_t at, size_t n, CUstream s)) \
	CUDA_STRUCT_COPIES(F, cuMemcpy2D, CUDA_MEMCPY2D) \
	CUDA_STRUCT_COPIES(F, cuMemcpy3D, CUDA_MEMCPY3D) \
	F(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D_v1 *c)) \
	F(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *c)) \
	F(cuMemcpy2DUnaligned_v2_ptds, (const CUDA_MEMCPY2D *c)) \
	F(cuMemcpy3DPeer, (const CUDA_MEMCPY3D *c)) \
	F(cuMemcpy3DPeer_ptds, (const CUDA_MEMCPY3D *c)) \
	F(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D *c, CUstream s)) \
	F(cuMemcpy3DPeerAsync_ptsz, (const CUDA_MEMCPY3D *c, CUstream s)) \
	F(cuMemPrefetchAsync, (CUdeviceptr p, size_t n, CUdevice to, CUstream s)) \
	F(cuMemPrefetchAsync_ptsz, (CUdeviceptr p, size_t n, CUdevice to, CUstream s)) \
	F(cuMemPrefetchAsync_v2, (CUdeviceptr p, size_t n, CUmemLocation to, unsigned flags, CUstream s)) \
	F(cuMemPrefetchAsync_v2_ptsz, (CUdeviceptr p, size_t n, CUmemLocation to, unsigned flags, CUstream s)) \
	CUDA_SETS(F, D8, unsigned char) \
	CUDA_SETS(F, D16, unsigned short) \
	CUDA_SETS(F, D32, unsigned) \
	F(cuMemAlloc, (CUdeviceptr_v1 *p, unsigned n)) \
	F(cuMemAlloc_v2, (CUdeviceptr *p, size_t n)) \
	F(cuMemAllocPitch, (CUdeviceptr_v1 *p, unsigned *pitch, unsigned w, unsigned h, unsigned e)) \
	F(cuMemAllocPitch_v2, (CUdeviceptr *p, size_t *pitch, size_t w, size_t h, unsigned e)) \
	F(cuMemAllocManaged, (CUdeviceptr *p, size_t n, unsigned flags)) \
	F(cuMemAllocHost, (void **p, unsigned n)) \
	F(cuMemAllocHost_v2, (void **p, size_t n)) \
	F(cuMemHostAlloc, (void **p, size_t n, unsigned flags)) \
	F(cuMemAllocAsync, (CUdeviceptr *p, size_t n, CUstream s)) \
	F(cuMemAllocAsync_ptsz, (CUdeviceptr *p, size_t n, CUstream s)) \
	F(cuMemAllocFromPoolAsync, (CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)) \
	F(cuMemAllocFromPoolAsync_ptsz, (CUdeviceptr *p, size_t n, CUmemoryPool pool, CUstream s)) \
	F(cuMemFree, (CUdeviceptr_v1 p)) \
	F(cuMemFree_v2, (CUdeviceptr p)) \
	F(cuMemFreeHost, (void *p)) \
	F(cuMemFreeAsync, (CUdeviceptr p, CUstream s)) \
	F(cuMemFreeAsync_ptsz, (CUdeviceptr p, CUstream s)) \
	F(cuMemCreate, (CUmemGenericAllocationHandle *h, size_t n, const CUmemAllocationProp *prop, uint64_t flags)) \
	F(cuMemRelease, (CUmemGenericAllocationHandle h)) \
	F(cuMemMap, (CUdeviceptr p, size_t n, size_t at, CUmemGenericAllocationHandle h, uint64_t flags)) \
	F(cuMemUnmap, (CUdeviceptr p, size_t n)) \
	F(cuMemSetAccess, (CUdeviceptr p, size_t n, const void *desc, size_t count)) \
	F(cuMemAddressReserve, (CUdeviceptr *p, size_t n, size_t align, CUdeviceptr at, uint64_t flags)) \
	F(cuMemAddressFree, (CUdeviceptr p, size_t n)) \
	F(cuMemHostRegister, (void *p, size_t n, unsigned flags)) \
	F(cuMemHostRegister_v2, (void *p, size_t n, unsigned flags)) \
	F(cuMemHostUnregister, (void *p)) \
	F(cuStreamSynchronize, (CUstream s)) \
	F(cuStreamSynchronize_ptsz, (CUstream s)) \
	F(cuEventSynchronize, (CUevent e)) \
	F(cuCtxSynchronize, (void)) \
	F(cuCtxSynchronize_v2, (CUcontext c)) \
	F(cuStreamQuery, (CUstream s)) \
	F(cuStreamQuery_ptsz, (CUstream s)) \
	F(cuEventQuery, (CUevent e)) \
	F(cuEventCreate, (CUevent *e, unsigned flags)) \
	F(cuEventDestroy, (CUevent e)) \
	F(cuEventDestroy_v2, (CUevent e)) \
	F(cuEventRecord, (CUevent e, CUstream s)) \
	F(cuEventRecord_ptsz, (CUevent e, CUstream s)) \
	F(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned flags)) \
	F(cuEventRecordWithFlags_ptsz, (CUevent e, CUstream s, unsigned flags)) \
	F(cuEventElapsedTime, (float *ms, CUevent from, CUevent to)) \
	F(cuEventElapsedTime_v2, (float *ms, CUevent from, CUevent to)) \
	F(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned flags)) \
	F(cuStreamWaitEvent_ptsz, (CUstream s, CUevent e, unsigned flags)) \
	F(cuModuleLoad, (CUmodule *m, const char *file)) \
	F(cuModuleLoadData, (CUmodule *m, const void *image)) \
	F(cuModuleLoadDataEx, (CUmodule *m, const void *image, unsigned n, int *options, void **values)) \
	F(cuModuleLoadFatBinary, (CUmodule *m, const void *image)) \
	F(cuModuleUnload, (CUmodule m)) \
	F(cuModuleGetFunction, (CUfunction *f, CUmodule m, const char *name)) \
	F(cuLibraryLoadData, (CUlibrary *l, const void *code, int *jo, void **jv, unsigned nj, int *lo, void **lv, unsigned nl)) \
	F(cuLibraryLoadFromFile, (CUlibrary *l, const char *file, int *jo, void **jv, unsigned nj, int *lo, void **lv, unsigned nl)) \
	F(cuLibraryUnload, (CUlibrary l)) \
	F(cuLibraryGetKernel, (CUkernel *k, CUlibrary l, const char *name)) \
	F(cuLibraryGetModule, (CUmodule *m, CUlibrary l)) \
	F(cuLibraryEnumerateKernels, (CUkernel *k, unsigned n, CUlibrary l)) \
	F(cuKernelGetFunction, (CUfunction *f, CUkernel k)) \
	F(cuFuncGetName, (const char **name, CUfunction f)) \
	F(cuKernelGetName, (const char **name, CUkernel k)) \
	F(cuGetProcAddress, (const char *symbol, void **fn, int version, uint64_t flags)) \
	F(cuGetProcAddress_v2, (const char *symbol, void **fn, int version, uint64_t flags, int *status)) \
	F(cuCtxCreate, (CUcontext *c, unsigned flags, CUdevice d)) \
	F(cuCtxCreate_v2, (CUcontext *c, unsigned flags, CUdevice d)) \
	F(cuCtxCreate_v3, (CUcontext *c, void *params, int n, unsigned flags, CUdevice d)) \
	F(cuCtxCreate_v4, (CUcontext *c, void *params, unsigned flags, CUdevice d)) \
	F(cuCtxDestroy, (CUcontext c)) \
	F(cuCtxDestroy_v2, (CUcontext c)) \
	F(cuCtxSetCurrent, (CUcontext c)) \
	F(cuCtxPushCurrent, (CUcontext c)) \
	F(cuCtxPushCurrent_v2, (CUcontext c)) \
	F(cuCtxPopCurrent, (CUcontext *c)) \
	F(cuCtxPopCurrent_v2, (CUcontext *c)) \
	F(cuCtxGetDevice, (CUdevice *d)) \
	F(cuDevicePrimaryCtxRetain, (CUcontext *c, CUdevice d)) \
	F(cuDevicePrimaryCtxRelease, (CUdevice d)) \
	F(cuDevicePrimaryCtxRelease_v2, (CUdevice d)) \
	F(cuDevicePrimaryCtxReset, (CUdevice d)) \
	F(cuDevicePrimaryCtxReset_v2, (CUdevice d)) \
	F(cuStreamCreate, (CUstream *s, unsigned flags)) \
	F(cuStreamCreateWithPriority, (CUstream *s, unsigned flags, int priority)) \
	F(cuStreamDestroy, (CUstream s)) \
	F(cuStreamDestroy_v2, (CUstream s)) \
	F(cuStreamBeginCapture, (CUstream s)) \
	F(cuStreamBeginCapture_ptsz, (CUstream s)) \
	F(cuStreamBeginCapture_v2, (CUstream s, int mode)) \
	F(cuStreamBeginCapture_v2_ptsz, (CUstream s, int mode)) \
	F(cuStreamBeginCaptureToGraph, (CUstream s, CUgraph g, const CUgraphNode *d, const void *data, size_t n, int mode)) \
	F(cuStreamBeginCaptureToGraph_ptsz, (CUstream s, CUgraph g, const CUgraphNode *d, const void *data, size_t n, int mode)) \
	F(cuStreamEndCapture, (CUstream s, CUgraph *g)) \
	F(cuStreamEndCapture_ptsz, (CUstream s, CUgraph *g)) \
	F(cuGraphCreate, (CUgraph *g, unsigned flags)) \
	F(cuGraphDestroy, (CUgraph g)) \
	F(cuGraphInstantiate, (CUgraphExec *e, CUgraph g, CUgraphNode *n, char *log, size_t size)) \
	F(cuGraphInstantiate_v2, (CUgraphExec *e, CUgraph g, CUgraphNode *n, char *log, size_t size)) \
	F(cuGraphInstantiateWithFlags, (CUgraphExec *e, CUgraph g, uint64_t flags)) \
	F(cuGraphInstantiateWithParams, (CUgraphExec *e, CUgraph g, void *params)) \
	F(cuGraphInstantiateWithParams_ptsz, (CUgraphExec *e, CUgraph g, void *params)) \
	F(cuGraphExecUpdate, (CUgraphExec e, CUgraph g, CUgraphNode *n, int *result)) \
	F(cuGraphExecUpdate_v2, (CUgraphExec e, CUgraph g, void *result)) \
	F(cuGraphExecDestroy, (CUgraphExec e)) \
	F(cuGraphAddKernelNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_KERNEL_NODE_PARAMS *p)) \
	F(cuGraphAddKernelNode_v2, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_KERNEL_NODE_PARAMS *p)) \
	F(cuGraphConditionalHandleCreate, (CUgraphConditionalHandle *h, CUgraph g, CUcontext c, unsigned start, unsigned flags)) \
	F(cuGraphClone, (CUgraph *clone, CUgraph original)) \
	F(cuGraphDestroyNode, (CUgraphNode n)) \
	F(cuGraphAddMemcpyNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_MEMCPY3D *p, CUcontext c)) \
	F(cuGraphAddMemsetNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_MEMSET_NODE_PARAMS *p, CUcontext c)) \
	F(cuGraphAddHostNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const CUDA_HOST_NODE_PARAMS *p)) \
	F(cuGraphAddEmptyNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd)) \
	F(cuGraphAddChildGraphNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUgraph child)) \
	F(cuGraphAddEventRecordNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUevent e)) \
	F(cuGraphAddEventWaitNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUevent e)) \
	F(cuGraphAddExternalSemaphoresSignalNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const void *p)) \
	F(cuGraphAddExternalSemaphoresWaitNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const void *p)) \
	F(cuGraphAddBatchMemOpNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, const void *p)) \
	F(cuGraphAddMemAllocNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUDA_MEM_ALLOC_NODE_PARAMS *p)) \
	F(cuGraphAddMemFreeNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUdeviceptr p)) \
	F(cuGraphAddNode, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, size_t nd, CUgraphNodeParams *p)) \
	F(cuGraphAddNode_v2, (CUgraphNode *n, CUgraph g, const CUgraphNode *d, const void *edges, size_t nd, CUgraphNodeParams *p))

#define CUDA_COPIES(F, name) \
	F(name, (uint64_t dst, uint64_t src, unsigned n)) \
	F(name##_v2, (uint64_t dst, uint64_t src, size_t n)) \
	F(name##_v2_ptds, (uint64_t dst, uint64_t src, size_t n)) \
	F(name##Async, (uint64_t dst, uint64_t src, unsigned n, CUstream s)) \
	F(name##Async_v2, (uint64_t dst, uint64_t src, size_t n, CUstream s)) \
	F(name##Async_v2_ptsz, (uint64_t dst, uint64_t src, size_t n, CUstream s))

#define CUDA_STRUCT_COPIES(F, name, layout) \
	F(name, (const layout##_v1 *c)) \
	F(name##_v2, (const layout *c)) \
	F(name##_v2_ptds, (const layout *c)) \
	F(name##Async, (const layout##_v1 *c, CUstream s)) \
	F(name##Async_v2, (const layout *c, CUstream s)) \
	F(name##Async_v2_ptsz, (const layout *c, CUstream s))

#define CUDA_SETS(F, type, element) \
	F(cuMemset##type, (CUdeviceptr_v1 p, element v, unsigned n)) \
	F(cuMemset##type##_v2, (CUdeviceptr p, element v, size_t n)) \
	F(cuMemset##type##_v2_ptds, (CUdeviceptr p, element v, size_t n)) \
	F(cuMemset##type##Async, (CUdeviceptr p, element v, size_t n, CUstream s)) \
	F(cuMemset##type##Async_ptsz, (CUdeviceptr p, element v, size_t n, CUstream s)) \
	F(cuMemsetD2##type, (CUdeviceptr_v1 p, unsigned pitch, element v, unsigned w, unsigned h)) \
	F(cuMemsetD2##type##_v2, (CUdeviceptr p, size_t pitch, element v, size_t w, size_t h)) \
	F(cuMemsetD2##type##_v2_ptds, (CUdeviceptr p, size_t pitch, element v, size_t w, size_t h)) \
	F(cuMemsetD2##type##Async, (CUdeviceptr p, size_t pitch, element v, size_t w, size_t h, CUstream s)) \
	F(cuMemsetD2##type##Async_ptsz, (CUdeviceptr p, size_t pitch, element v, size_t w, size_t h, CUstream s))

#define DECLARE(name, arguments) CUresult name arguments;
CUDA_FUNCTIONS(DECLARE)
#undef DECLARE

#endif
