/* A stub of NCCL, libnccl.so.2, with RCCL's additions: communicators of any size
 * in one process, collectives that do nothing. Its functions begin with
 * "endbr64; push", as those of 2.29 do. A count of zero on AllReduce is refused;
 * with a config, a communicator is still in the making when the call returns. As
 * in NCCL, a part in the making has no handle yet: it comes with the end of the
 * thread's group, or, with a config, when the state of the whole group is asked for. So
 * does, before NCCL 2.14 and here, the handle of ncclCommInitRank in a group. */
#include "nccl.h"

#include <stdlib.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

/* A callee-saved register is what they push; the barrier keeps it alive. */
static __attribute__((noinline)) ncclResult_t done(ncclResult_t result)
{
	__asm__ volatile("");
	return result;
}

#define FUNCTION(name, arguments, result) \
	ncclResult_t name arguments { ncclResult_t r_ = done(result); __asm__ volatile("" ::: "rbx", "memory"); return r_; }
#if !defined(__x86_64__)
#undef FUNCTION
#define FUNCTION(name, arguments, result) ncclResult_t name arguments { return done(result); }
#endif

#define IN_PROGRESS 7
static int make(ncclComm_t *c) { *c = malloc(64); return 0; }
static int begin(ncclComm_t *c, void *config) { make(c); return config ? IN_PROGRESS : 0; }

/* Where handles will go. */
#define MOST_PROMISED 16
static __thread ncclComm_t *promised[MOST_PROMISED];
static __thread int promises, depth;

static int keep(void)
{
	while (promises > 0)
		make(promised[--promises]);
	return 0;
}

static int part(ncclComm_t *c, void *config)
{
	*c = NULL;
	if (depth == 0 && !config)
		return make(c);
	if (promises == MOST_PROMISED)
		return 4;
	promised[promises++] = c;
	return config ? IN_PROGRESS : 0;
}

static int make_in_group(ncclComm_t *c) { return depth ? part(c, NULL) : make(c); }
static int group_end(void) { return --depth <= 0 ? keep() : 0; }

FUNCTION(ncclAllReduce, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, stream_t on), n ? 0 : 4)
FUNCTION(ncclReduceScatter, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclReduce, (const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t op, int root, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclBroadcast, (const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclGather, (const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclScatter, (const void *s, void *r, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclBcast, (void *b, size_t n, ncclDataType_t t, int root, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclAllGather, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclAlltoAll, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclAllToAll, (const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclSend, (const void *b, size_t n, ncclDataType_t t, int peer, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclRecv, (void *b, size_t n, ncclDataType_t t, int peer, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclAllToAllv, (const void *s, const size_t *sc, const size_t *sd, void *r, const size_t *rc, const size_t *rd, ncclDataType_t t, ncclComm_t c, stream_t on), 0)
FUNCTION(ncclGroupStart, (void), (depth++, 0))
FUNCTION(ncclGroupEnd, (void), group_end())
FUNCTION(ncclGroupSimulateEnd, (void *info), group_end())
FUNCTION(ncclCommInitRank, (ncclComm_t *c, int ranks, ncclUniqueId id, int rank), make_in_group(c))
FUNCTION(ncclCommInitRankConfig, (ncclComm_t *c, int ranks, ncclUniqueId id, int rank, void *config), begin(c, config))
FUNCTION(ncclCommInitRankScalable, (ncclComm_t *c, int ranks, int rank, int n, ncclUniqueId *ids, void *config), make(c))
static int make_all(ncclComm_t *c, int n) { while (n-- > 0) make(c++); return 0; }
FUNCTION(ncclCommInitAll, (ncclComm_t *c, int n, const int *devices), make_all(c, n))
FUNCTION(ncclCommCount, (ncclComm_t c, int *count), (*count = 5, 0))
FUNCTION(ncclCommUserRank, (ncclComm_t c, int *rank), (*rank = 2, 0))
FUNCTION(ncclCommCuDevice, (ncclComm_t c, int *device), (*device = 1, 0))
FUNCTION(ncclCommSplit, (ncclComm_t c, int color, int key, ncclComm_t *newcomm, void *config), color < 0 ? (*newcomm = NULL, 0) : part(newcomm, config))
FUNCTION(ncclCommShrink, (ncclComm_t c, int *excluded, int n, ncclComm_t *rest, void *config, int flags), part(rest, config))
FUNCTION(ncclCommGrow, (ncclComm_t c, int ranks, const ncclUniqueId *id, int rank, ncclComm_t *grown, void *config), part(grown, config))
FUNCTION(ncclCommDestroy, (ncclComm_t c), 0)
FUNCTION(ncclCommAbort, (ncclComm_t c), 0)
FUNCTION(ncclCommFinalize, (ncclComm_t c), 0)
FUNCTION(ncclCommGetAsyncError, (ncclComm_t c, ncclResult_t *error), (keep(), *error = 0))
