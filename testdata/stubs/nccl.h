/* The part of NCCL's interface that the catalog names, and RCCL's additions,
 * written from the public manuals. For the stub and for the program that calls it. */
#ifndef STUB_NCCL_H
#define STUB_NCCL_H

#include <stddef.h>
#include <stdint.h>

typedef struct ncclComm *ncclComm_t;
typedef struct { char internal[128]; } ncclUniqueId;
typedef int ncclResult_t, ncclDataType_t, ncclRedOp_t;
typedef struct stream *stream_t;

#define NCCL_FUNCTIONS(F) \
	F(ncclAllReduce, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, stream_t on)) \
	F(ncclReduceScatter, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, stream_t on)) \
	F(ncclReduce, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c, stream_t on)) \
	F(ncclBroadcast, (const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on)) \
	F(ncclGather, (const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on)) \
	F(ncclScatter, (const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on)) \
	F(ncclBcast, (void *b, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on)) \
	F(ncclAllGather, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, stream_t on)) \
	F(ncclAlltoAll, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, stream_t on)) \
	F(ncclAllToAll, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, stream_t on)) \
	F(ncclSend, (const void *b, size_t n, ncclDataType_t t, int peer, ncclComm_t c, stream_t on)) \
	F(ncclRecv, (void *b, size_t n, ncclDataType_t t, int peer, ncclComm_t c, stream_t on)) \
	F(ncclAllToAllv, (const void *s, const size_t *sc, const size_t *sd, void *r, const size_t *rc, const size_t *rd, ncclDataType_t t, ncclComm_t c, stream_t on)) \
	F(ncclGroupStart, (void)) \
	F(ncclGroupEnd, (void)) \
	F(ncclGroupSimulateEnd, (void *info)) \
	F(ncclCommInitRank, (ncclComm_t *c, int ranks, ncclUniqueId id, int rank)) \
	F(ncclCommInitRankConfig, (ncclComm_t *c, int ranks, ncclUniqueId id, int rank, void *config)) \
	F(ncclCommInitRankScalable, (ncclComm_t *c, int ranks, int rank, int n, ncclUniqueId *ids, void *config)) \
	F(ncclCommInitAll, (ncclComm_t *c, int n, const int *devices)) \
	F(ncclCommCount, (ncclComm_t c, int *count)) \
	F(ncclCommUserRank, (ncclComm_t c, int *rank)) \
	F(ncclCommCuDevice, (ncclComm_t c, int *device)) \
	F(ncclCommSplit, (ncclComm_t c, int color, int key, ncclComm_t *part, void *config)) \
	F(ncclCommShrink, (ncclComm_t c, int *excluded, int n, ncclComm_t *rest, void *config, int flags)) \
	F(ncclCommGrow, (ncclComm_t c, int ranks, const ncclUniqueId *id, int rank, ncclComm_t *grown, void *config)) \
	F(ncclCommDestroy, (ncclComm_t c)) \
	F(ncclCommAbort, (ncclComm_t c)) \
	F(ncclCommFinalize, (ncclComm_t c)) \
	F(ncclCommGetAsyncError, (ncclComm_t c, ncclResult_t *error))

#define DECLARE(name, arguments) ncclResult_t name arguments;
NCCL_FUNCTIONS(DECLARE)
#undef DECLARE

#endif
