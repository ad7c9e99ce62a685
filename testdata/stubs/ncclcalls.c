/* Calls every function of the stub libnccl with arguments of its own, and says
 * what a recording of that has to hold (expect.h).
 *
 *   ncclcalls all [wait]
 *   ncclcalls ranks RANK [wait]   rank RANK of 3 in a group, then in a part of it,
 *                                 as each process of a job would
 *   ncclcalls split RANK wait     rank RANK of 4: a split into pairs and one without
 *                                 a part, in the reverse order of ranks, and after
 *                                 another "ready" what ranks the parts have
 *   ncclcalls grouped RANK wait   rank RANK of 3, made in a group: two splits and a
 *                                 shrinking in one group, a split that does not block, and one into
 *                                 a place that serves another handle meanwhile
 *   ncclcalls late 0 [wait]       on a communicator made before "ready"
 *   ncclcalls steady              numbered collectives until a line of input (steadywork.h)
 *   ncclcalls copies LIB [wait]   five collectives through the NCCL that it is
 *                                 linked with, three through library LIB */
#include <dlfcn.h>

#include "nccl.h"
#include "expect.h"
#include "steadywork.h"

#define P(x) ((uint64_t)(uintptr_t)(x))
static ncclComm_t c;
static stream_t on = (stream_t)0x7700;
static char send_[8], receive[8];

static ncclUniqueId identity(int seed)
{
	ncclUniqueId id = { { 0 } };

	for (int i = 0; i < 40; i++)
		id.internal[i] = seed + 3 * i;
	return id;
}

static void all(void)
{
	static const struct { const char *name; int bytes; } types[] = {
		{ "int8", 1 }, { "uint8", 1 }, { "int32", 4 }, { "uint32", 4 }, { "int64", 8 }, { "uint64", 8 },
		{ "float16", 2 }, { "float32", 4 }, { "float64", 8 }, { "bfloat16", 2 }, { "float8_e4m3", 1 }, { "float8_e5m2", 1 },
	};
	size_t counts[4] = { 0 };
	ncclComm_t part, other;
	ncclResult_t error;
	ncclUniqueId id = identity(7);

#define WORK "collective element_count=%lu dtype=%s bytes=%lu rank=2 ranks=5 communicator_handle=%lu stream=%lu group_depth=- "
	ncclCommInitRank(&c, 5, identity(1), 2);
	expect("call ncclCommInitRank communicator rank=2 ranks=5 communicator_handle=%lu", P(c));
	for (int t = 0; t < 12; t++) {
		ncclAllReduce(send_, receive, 100 + t, t, 0, c, on);
		expect("call ncclAllReduce " WORK "peer_rank=-", 100UL + t, types[t].name, (100UL + t) * types[t].bytes, P(c), P(on));
	}
	ncclAllReduce(send_, receive, 50, 99, 0, c, on); /* a type of the future */
	expect("call ncclAllReduce collective element_count=50 dtype=- bytes=-");
	ncclAllReduce(send_, receive, 0, 7, 0, c, on);
	expect("call ncclAllReduce collective status=error error_code=4");
	size_t n = 1000;
#define CALL(name, peer, ...) \
	n++; name(__VA_ARGS__, c, on); \
	expect("call " #name " " WORK "peer_rank=" peer, n, "float32", n * 4, P(c), P(on));
	CALL(ncclReduceScatter, "-", send_, receive, n, 7, 0)
	CALL(ncclReduce, "3", send_, receive, n, 7, 0, 3)
	CALL(ncclBroadcast, "4", send_, receive, n, 7, 4)
	CALL(ncclGather, "1", send_, receive, n, 7, 1)
	CALL(ncclScatter, "0", send_, receive, n, 7, 0)
	CALL(ncclBcast, "3", send_, n, 7, 3)
	CALL(ncclAllGather, "-", send_, receive, n, 7)
	CALL(ncclAlltoAll, "-", send_, receive, n, 7)
	CALL(ncclAllToAll, "-", send_, receive, n, 7)
	CALL(ncclSend, "4", send_, n, 7, 4)
	CALL(ncclRecv, "3", receive, n, 7, 3)
	ncclAllToAllv(send_, counts, counts, receive, counts, counts, 6, c, on);
	expect("call ncclAllToAllv collective dtype=float16 communicator_handle=%lu stream=%lu", P(c), P(on));

	ncclGroupStart();
	expect("call ncclGroupStart communicator group_depth=-");
	ncclSend(send_, 8, 0, 1, c, on);
	expect("call ncclSend collective group_depth=1 peer_rank=1");
	ncclGroupStart();
	expect("call ncclGroupStart communicator group_depth=1");
	ncclRecv(receive, 8, 0, 1, c, on);
	expect("call ncclRecv collective group_depth=2");
	ncclGroupEnd();
	expect("call ncclGroupEnd communicator group_depth=2");
	ncclGroupSimulateEnd(NULL);
	expect("call ncclGroupSimulateEnd communicator group_depth=1");
	ncclSend(send_, 8, 0, 1, c, on);
	expect("call ncclSend collective group_depth=-");

	ncclCommInitRankConfig(&other, 6, identity(2), 4, NULL);
	expect("call ncclCommInitRankConfig communicator rank=4 ranks=6 communicator_handle=%lu", P(other));
	ncclCommInitRankScalable(&other, 7, 5, 1, &id, NULL);
	expect("call ncclCommInitRankScalable communicator rank=5 ranks=7 communicator_handle=%lu", P(other));
	ncclComm_t pair[2];
	int answer;
	ncclCommInitAll(pair, 2, NULL);
	expect("call ncclCommInitAll communicator ranks=2 rank=-");
	for (int i = 0; i < 2; i++) {
		ncclAllReduce(send_, receive, 9, 7, 0, pair[i], on);
		expect("call ncclAllReduce collective rank=%d ranks=2 communicator_handle=%lu", i, P(pair[i]));
	}
	ncclCommCount(c, &answer);
	expect("call ncclCommCount communicator ranks=5 communicator_handle=%lu", P(c));
	ncclCommUserRank(c, &answer);
	expect("call ncclCommUserRank communicator rank=2 communicator_handle=%lu", P(c));
	ncclCommCuDevice(c, &answer);
	expect("call ncclCommCuDevice communicator device_id=1 communicator_handle=%lu", P(c));
	ncclCommSplit(c, 3, 0, &part, NULL);
	expect("call ncclCommSplit communicator communicator_handle=%lu", P(c));
	ncclAllReduce(send_, receive, 9, 7, 0, part, on);
	expect("call ncclAllReduce collective communicator_handle=%lu rank=-", P(part));
	ncclCommUserRank(part, &answer); /* the job asks */
	expect("call ncclCommUserRank communicator rank=2 ranks=- communicator_handle=%lu", P(part));
	ncclCommCount(part, &answer);
	expect("call ncclCommCount communicator rank=2 ranks=5");
	ncclAllReduce(send_, receive, 9, 7, 0, part, on);
	expect("call ncclAllReduce collective communicator_handle=%lu rank=2 ranks=5", P(part));

	/* Both ranks of a communicator are here: what parts they get follows. */
	ncclComm_t halves[2];
	for (int i = 0; i < 2; i++) {
		ncclCommSplit(pair[i], 0, 5 - i, &halves[i], NULL);
		expect("call ncclCommSplit communicator communicator_handle=%lu rank=%d ranks=2", P(pair[i]), i);
		ncclAllReduce(send_, receive, 9, 7, 0, halves[i], on);
		expect("call ncclAllReduce collective rank=%s ranks=%s", i ? "0" : "-", i ? "2" : "-");
	}
	ncclAllReduce(send_, receive, 9, 7, 0, halves[0], on);
	expect("call ncclAllReduce collective rank=1 ranks=2");
	ncclCommSplit(c, -1, 0, &other, NULL); /* no part */
	expect("call ncclCommSplit communicator handle=0");

	int excluded[] = { 4, 0, 5, 6, 7, 8, 9, 10, 11 };
	ncclCommShrink(c, excluded, 2, &other, NULL, 0);
	expect("call ncclCommShrink communicator communicator_handle=%lu rank=2 ranks=5 element_count=-", P(c));
	ncclAllReduce(send_, receive, 9, 7, 0, other, on);
	expect("call ncclAllReduce collective communicator_handle=%lu rank=1 ranks=3", P(other));
	ncclComm_t large;
	ncclCommInitRank(&large, 20, identity(3), 15);
	expect("call ncclCommInitRank communicator rank=15 ranks=20");
	ncclCommShrink(large, excluded, 9, &other, NULL, 0); /* more than are kept */
	expect("call ncclCommShrink communicator rank=15 ranks=20");
	ncclAllReduce(send_, receive, 9, 7, 0, other, on);
	expect("call ncclAllReduce collective rank=- ranks=11 communicator=-");
	ncclCommGrow(NULL, 22, &id, 21, &other, NULL);
	expect("call ncclCommGrow communicator rank=21 ranks=22 communicator_handle=%lu", P(other));
	ncclCommGrow(large, 22, NULL, -1, &other, NULL);
	expect("call ncclCommGrow communicator rank=- ranks=22 communicator=- communicator_handle=%lu", P(other));
	ncclCommInitRankConfig(&other, 6, identity(2), 4, &answer);
	expect("call ncclCommInitRankConfig communicator status=not_ready rank=4 ranks=6");
	ncclAllReduce(send_, receive, 9, 7, 0, other, on);
	expect("call ncclAllReduce collective rank=4 ranks=6 communicator_handle=%lu", P(other));
	ncclCommGetAsyncError(c, &error);
	expect("call ncclCommGetAsyncError communicator communicator_handle=%lu", P(c));
	ncclCommFinalize(part);
	expect("call ncclCommFinalize communicator communicator_handle=%lu", P(part));
	ncclCommDestroy(part);
	expect("call ncclCommDestroy communicator communicator_handle=%lu", P(part));
	ncclCommAbort(c);
	expect("call ncclCommAbort communicator rank=2 communicator_handle=%lu", P(c));
	ncclAllReduce(send_, receive, 9, 7, 0, c, on); /* gone */
	expect("call ncclAllReduce collective rank=- communicator_handle=%lu", P(c));
}

static void ranks(int rank)
{
	ncclComm_t part;

	ncclCommInitRank(&c, 3, identity(42), rank);
	ncclAllReduce(send_, receive, 10, 7, 0, c, on);
	ncclCommSplit(c, rank % 2, rank, &part, NULL);
	ncclAllReduce(send_, receive, 20, 7, 0, part, on);
}

static void split(int rank)
{
	ncclComm_t part;

	ncclCommInitRank(&c, 4, identity(43), rank);
	ncclCommSplit(c, rank == 3 ? -1 : rank % 2, -rank, &part, NULL);
	ready(1); /* the others have as well */
	ncclAllReduce(send_, receive, 30, 7, 0, part ? part : c, on);
	ncclCommSplit(c, 0, 0, &part, NULL); /* all stay together */
	ready(1);
	ncclAllReduce(send_, receive, 40, 7, 0, part, on);
}

/* Parts whose handles come after the call that makes them. */
static void grouped(int rank)
{
	ncclComm_t pair, all_, rest, slow, place;
	ncclResult_t error;
	int excluded[] = { 1 };

	ncclGroupStart();
	ncclCommInitRank(&c, 3, identity(44), rank);
	ncclGroupEnd();
	ncclGroupStart();
	ncclCommSplit(c, rank == 1 ? -1 : 5, -rank, &pair, NULL); /* ranks 2 and 0 */
	ncclGroupStart();
	ncclCommSplit(c, 0, rank, &all_, NULL);
	ncclGroupEnd(); /* not the outermost */
	if (rank != 1)
		ncclCommShrink(c, excluded, 1, &rest, NULL, 0);
	ncclGroupEnd();
	ready(1); /* the others have as well */
	ncclAllReduce(send_, receive, 50, 7, 0, pair ? pair : c, on);
	ncclAllReduce(send_, receive, 60, 7, 0, all_, on);
	ncclAllReduce(send_, receive, 70, 7, 0, rank != 1 ? rest : c, on);

	ncclCommSplit(c, 0, -rank, &slow, &error);
	usleep(200000); /* the tracer has seen that there is no handle */
	ncclCommGetAsyncError(c, &error);
	usleep(200000); /* and that there is one */
	ready(1);
	ncclAllReduce(send_, receive, 80, 7, 0, slow, on);

	/* Its handle is moved away before it is used, and the place holds another. */
	ncclCommSplit(c, 0, rank, &place, &error);
	ncclCommGetAsyncError(c, &error);
	ncclComm_t moved = place;
	place = slow;
	ready(1);
	ncclAllReduce(send_, receive, 90, 7, 0, moved, on);
	ncclAllReduce(send_, receive, 100, 7, 0, place, on);
}

static void late(void)
{
	int answer;

	ncclAllReduce(send_, receive, 9, 7, 0, c, on);
	expect("call ncclAllReduce collective rank=- ranks=- communicator=- communicator_handle=%lu", P(c));
	ncclCommUserRank(c, &answer);
	expect("call ncclCommUserRank communicator rank=2 ranks=- communicator=-");
	ncclCommCount(c, &answer);
	expect("call ncclCommCount communicator rank=2 ranks=5 communicator=-");
	ncclAllReduce(send_, receive, 9, 7, 0, c, on);
	expect("call ncclAllReduce collective rank=2 ranks=5 communicator=- communicator_handle=%lu", P(c));
}

static void copies(const char *path)
{
	void *other = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	__typeof__(ncclAllReduce) *reduce = other ? (__typeof__(ncclAllReduce) *)dlsym(other, "ncclAllReduce") : NULL;

	if (!reduce || reduce == ncclAllReduce)
		exit(3);
	usleep(500000); /* the tracer sees it */
	for (int i = 0; i < 5; i++)
		ncclAllReduce(send_, receive, 9, 7, 0, c, on);
	for (int i = 0; i < 3; i++)
		reduce(send_, receive, 9, 7, 0, c, on);
}

static void numbered(uint64_t number) { ncclAllReduce(send_, receive, number, 7, 0, c, on); }

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "steady") == 0) {
		ncclCommInitRank(&c, 5, identity(1), 2);
		return steady_work(numbered), 0;
	}
	if (argc > 2 && (strcmp(argv[1], "late") == 0 || strcmp(argv[1], "copies") == 0))
		ncclCommInitRank(&c, 5, identity(1), 2);
	ready(argc > 2 && strcmp(argv[argc - 1], "wait") == 0);
	if (argc > 2 && strcmp(argv[1], "ranks") == 0)
		ranks(atoi(argv[2]));
	else if (argc > 2 && strcmp(argv[1], "split") == 0)
		split(atoi(argv[2]));
	else if (argc > 2 && strcmp(argv[1], "grouped") == 0)
		grouped(atoi(argv[2]));
	else if (argc > 2 && strcmp(argv[1], "late") == 0)
		late();
	else if (argc > 2 && strcmp(argv[1], "copies") == 0)
		copies(argv[2]);
	else
		all();
	tell_expected();
	return 0;
}
