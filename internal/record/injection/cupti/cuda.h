/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What CUPTI's headers need of the CUDA driver's: names of types, most of which are only pointed to. With it the
 * headers of CUPTI alone are enough to compile against.
 */
#ifndef EBPFPROF_CUDA_H
#define EBPFPROF_CUDA_H

#include <stddef.h>
#include <stdint.h>

#define CUDAAPI
#define CUDA_VERSION 12000

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUlib_st *CUlibrary;
typedef struct { char bytes[16]; } CUuuid;
typedef enum { CU_GRAPH_NODE_TYPE_KERNEL } CUgraphNodeType;
typedef enum { CU_STREAM_ATTRIBUTE_NONE } CUstreamAttrID;
typedef struct CUstreamAttrValue CUstreamAttrValue;
typedef enum { CU_DEVICE_ATTRIBUTE_NONE } CUdevice_attribute;
typedef struct CUaccessPolicyWindow CUaccessPolicyWindow;

#endif
