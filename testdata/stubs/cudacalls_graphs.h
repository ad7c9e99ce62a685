/* A part of cudacalls.c: graphs, captured and made of nodes, and their replays. */

static void nothing(void *data) { (void)data; }

/* What a memory node does when its graph runs. */
#define REPLAYED(action, bytes, address, device) expect("memory " action " device %d %lu %d", bytes, (uint64_t)(address), device);

/* A graph of every kind of node, with a child that has one, and a replay of it. */
static void nodes(void)
{
	CUgraph g, child, clone;
	CUgraphExec e, inner;
	CUgraphNode node, gone;
	CUevent event;
	CUdeviceptr p;
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .WidthInBytes = 100, .Height = 3, .Depth = 2 };
	CUDA_MEMSET_NODE_PARAMS set = { .elementSize = 4, .width = 25, .height = 3 };
	CUDA_HOST_NODE_PARAMS call = { nothing, NULL };
	CUDA_MEM_ALLOC_NODE_PARAMS room = { .poolProps.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 }, .bytesize = 4096 };
	CUgraphConditionalHandle handle;
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_KERNEL, .kernel = { f, 2, 3, 4, 5, 6, 7, 80, NULL, NULL, NULL, NULL } };

	SIMPLE(cuEventCreate, "event", &event, 0)
	SIMPLE(cuGraphCreate, "graph", &child, 0)
	cuGraphAddMemsetNode(&node, child, NULL, 0, &set, c0);
	expect("call cuGraphAddMemsetNode graph bytes=300");
	SIMPLE(cuGraphAddEmptyNode, "graph", &gone, child, NULL, 0)
	SIMPLE(cuGraphDestroyNode, "graph", gone)
	SIMPLE(cuGraphClone, "graph", &clone, child)

	SIMPLE(cuGraphCreate, "graph", &g, 0)
	cuGraphAddMemcpyNode(&node, g, NULL, 0, &copy, c0);
	expect("call cuGraphAddMemcpyNode graph bytes=600 direction=host_to_device");
	SIMPLE(cuGraphAddHostNode, "graph", &node, g, NULL, 0, &call)
	SIMPLE(cuGraphAddChildGraphNode, "graph", &node, g, NULL, 0, clone)
	SIMPLE(cuGraphAddEventRecordNode, "graph", &node, g, NULL, 0, event)
	SIMPLE(cuGraphAddEventWaitNode, "graph", &node, g, NULL, 0, event)
	SIMPLE(cuGraphAddExternalSemaphoresSignalNode, "graph", &node, g, NULL, 0, NULL)
	SIMPLE(cuGraphAddExternalSemaphoresWaitNode, "graph", &node, g, NULL, 0, NULL)
	SIMPLE(cuGraphAddBatchMemOpNode, "graph", &node, g, NULL, 0, NULL)
	cuGraphAddMemAllocNode(&node, g, NULL, 0, &room);
	expect("call cuGraphAddMemAllocNode graph bytes=4096 device_id=1");
	SIMPLE(cuGraphAddMemFreeNode, "graph", &node, g, NULL, 0, room.dptr)
	cuGraphAddNode(&node, g, NULL, 0, &any);
	expect("call cuGraphAddNode graph " SHOWN " grid_x=2 grid_z=4 block_z=7 name_source=getfunction");
	any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph = { child } };
	cuGraphAddNode_v2(&node, g, NULL, NULL, 0, &any);
	expect("call cuGraphAddNode_v2 graph grid_x=- name_source=-");
	any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = set };
	cuGraphAddNode(&node, g, NULL, 0, &any);
	expect("call cuGraphAddNode graph bytes=300 grid_x=- name_source=-");
	CUgraph spare; /* for this one call */
	SIMPLE(cuGraphCreate, "graph", &spare, 0)
	cuGraphAddNode_v2(&node, spare, NULL, NULL, 0, &any);
	expect("call cuGraphAddNode_v2 graph bytes=300 grid_x=- name_source=-");
	SIMPLE(cuGraphConditionalHandleCreate, "graph", &handle, g, c0, 1, 0)
	SIMPLE(cuGraphInstantiateWithFlags, "graph", &inner, g, 0)
	cuGraphLaunch(inner, s);
	expect("call cuGraphLaunch graph stream=%lu", P(s));
	REPLAYED("alloc", 4096, room.dptr, 1)
	REPLAYED("free", 4096, room.dptr, 1)

	/* Captured: what a stream is given besides launches and copies. */
	ON(cuStreamBeginCapture_v2, "graph", s, 0)
	cuMemAllocAsync(&p, 512, s);
	expect("call cuMemAllocAsync graph bytes=512");
	cuMemsetD8Async(1, 7, 64, s);
	expect("call cuMemsetD8Async graph bytes=64");
	cuLaunchHostFunc(s, nothing, NULL);
	expect("call cuLaunchHostFunc graph");
	cuEventRecordWithFlags(event, s, 1); /* external: a node */
	expect("call cuEventRecordWithFlags graph");
	cuEventRecord(event, s); /* only orders what is captured */
	expect("call cuEventRecord event");
	cuMemFreeAsync(p, s);
	expect("call cuMemFreeAsync graph");
	cuGraphLaunch(inner, s); /* a child */
	expect("call cuGraphLaunch graph");
	cuStreamEndCapture(s, &g);
	expect("call cuStreamEndCapture graph");
	SIMPLE(cuGraphInstantiateWithFlags, "graph", &e, g, 0)
	cuGraphLaunch(e, s);
	expect("call cuGraphLaunch graph stream=%lu", P(s));
	REPLAYED("alloc", 512, p, 0)
	REPLAYED("free", 512, p, 0)
	REPLAYED("alloc", 4096, room.dptr, 1) /* of the child */
	REPLAYED("free", 4096, room.dptr, 1)
}

/* Graphs that allocate: what is not freed by the graph itself is freed by the
 * job, or, with AUTO_FREE_ON_LAUNCH, by the next replay. */
static void graph_memory(void)
{
	CUgraph g;
	CUgraphExec e;
	CUgraphNode node;
	CUdeviceptr inside, captured;
	CUDA_MEM_ALLOC_NODE_PARAMS room = { .poolProps.location = { CU_MEM_LOCATION_TYPE_DEVICE, 3 }, .bytesize = 8192 };
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = { .poolProps.location = { CU_MEM_LOCATION_TYPE_HOST, 0 }, .bytesize = 77 } };

	cuGraphCreate(&g, 0);
	cuGraphAddMemAllocNode(&node, g, NULL, 0, &room); /* left to the job */
	cuGraphAddNode(&node, g, NULL, 0, &any);
	inside = any.alloc.dptr;
	any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = { inside } };
	cuGraphAddNode(&node, g, NULL, 0, &any);
	cuGraphInstantiateWithFlags(&e, g, 1);
	for (int i = 0; i < 3; i++) {
		if (i == 2) {
			cuMemFreeAsync(room.dptr, s);
			REPLAYED("free", 8192, room.dptr, 3)
		}
		cuGraphLaunch(e, s);
		if (i == 1)
			REPLAYED("free", 8192, room.dptr, 3) /* by the launch */
		REPLAYED("alloc", 8192, room.dptr, 3)
		expect("memory alloc pinned 77 %lu -", (uint64_t)inside);
		expect("memory free pinned 77 %lu -", (uint64_t)inside);
	}
	cuMemFree_v2(room.dptr);
	REPLAYED("free", 8192, room.dptr, 3)

	cuStreamBeginCapture_v2(s, 0);
	cuMemAllocFromPoolAsync(&captured, 640, (CUmemoryPool)0x9000, s);
	cuStreamEndCapture(s, &g);
	cuGraphInstantiateWithFlags(&e, g, 0);
	cuGraphLaunch(e, s);
	REPLAYED("alloc", 640, captured, 0)
	cuMemFreeAsync(captured, s);
	REPLAYED("free", 640, captured, 0)
}

/* A graph with an "if" around a copy, a "while" around a kernel and another "if"
 * with a kernel, and a "switch" over three bodies, one of them captured. */
static void conditionals(void)
{
	CUgraph g;
	CUgraphExec e;
	CUgraphNode node;
	CUgraphConditionalHandle handle;
	CUDA_KERNEL_NODE_PARAMS kernel = { f, 100, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL, NULL };
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .dstMemoryType = CU_MEMORYTYPE_DEVICE, .WidthInBytes = 100, .Height = 1, .Depth = 1 };

	cuGraphCreate(&g, 0);
	cuGraphAddKernelNode(&node, g, NULL, 0, &kernel); /* runs once a replay */
	cuGraphConditionalHandleCreate(&handle, g, c0, 1, 0);
#define CONDITIONAL(in, kind, bodies)                                                                      \
	(any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_CONDITIONAL, .conditional = { handle, kind, bodies, NULL, c0 } }, \
	 cuGraphAddNode(&node, in, NULL, 0, &any), any.conditional.phGraph_out)
	CUgraphNodeParams any;
	CUgraph *body = CONDITIONAL(g, CU_GRAPH_COND_TYPE_IF, 1);
	cuGraphAddMemcpyNode(&node, body[0], NULL, 0, &copy, c0);
	body = CONDITIONAL(g, CU_GRAPH_COND_TYPE_WHILE, 1);
	kernel.gridDimX = 200;
	cuGraphAddKernelNode(&node, body[0], NULL, 0, &kernel);
	body = CONDITIONAL(body[0], CU_GRAPH_COND_TYPE_IF, 1);
	kernel.gridDimX = 300;
	cuGraphAddKernelNode(&node, body[0], NULL, 0, &kernel);
	body = CONDITIONAL(g, CU_GRAPH_COND_TYPE_SWITCH, 3);
	for (int i = 0; i < 3; i++) {
		cuStreamBeginCaptureToGraph(s, body[i], NULL, NULL, 0, 0);
		cuLaunchKernel(f, 400 + i, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
		cuStreamEndCapture(s, &body[i]);
	}
	cuGraphInstantiateWithFlags(&e, g, 0);
	kernel.gridDimX = 500;
	cuGraphAddKernelNode(&node, body[0], NULL, 0, &kernel); /* not in the executable graph */
	cuGraphLaunch(e, s);
	cuGraphLaunch(e, s);
	cuStreamSynchronize(s);
}

/* A capture that the job breaks by waiting in it: afterwards the stream runs what
 * it is given. */
static void broken_capture(void)
{
	CUgraph g;

	ON(cuStreamBeginCapture_v2, "graph", s, 0)
	cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	expect("call cuLaunchKernel graph " SHOWN);
	cuStreamSynchronize(s);
	expect("call cuStreamSynchronize sync status=error error_code=900");
	cuStreamEndCapture(s, &g);
	expect("call cuStreamEndCapture graph status=error error_code=901");
	cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	expect("call cuLaunchKernel launch " SHOWN);
}

static void graphs(void)
{
	CUgraph g;
	CUgraphExec e;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS params = { f, 2, 3, 4, 5, 6, 7, 80, NULL, NULL, NULL, NULL };

#define CAPTURE(begin, ending, ...)                                                                        \
	begin(s, ##__VA_ARGS__);                                                                           \
	expect("call " #begin " graph stream=%lu", P(s));                                                  \
	cuLaunchKernel(f, 1, 2, 3, 4, 5, 6, 7, s, NULL, NULL);                                             \
	expect("call cuLaunchKernel graph " SHOWN " grid_x=1");                                            \
	cuMemcpyDtoDAsync_v2(1, 2, 99, s);                                                                 \
	expect("call cuMemcpyDtoDAsync_v2 graph bytes=99");                                                \
	ending(s, &g);                                                                                     \
	expect("call " #ending " graph stream=%lu", P(s));
	CAPTURE(cuStreamBeginCapture, cuStreamEndCapture)
	CAPTURE(cuStreamBeginCapture_ptsz, cuStreamEndCapture_ptsz)
	CAPTURE(cuStreamBeginCaptureToGraph, cuStreamEndCapture, g, NULL, NULL, 0, 0)
	CAPTURE(cuStreamBeginCaptureToGraph_ptsz, cuStreamEndCapture, g, NULL, NULL, 0, 0)
	CAPTURE(cuStreamBeginCapture_v2, cuStreamEndCapture, 0)
	CAPTURE(cuStreamBeginCapture_v2_ptsz, cuStreamEndCapture, 0)
#define REPLAY(instantiate, ...)                                                                           \
	instantiate(&e, g, ##__VA_ARGS__);                                                                 \
	expect("call " #instantiate " graph");                                                             \
	cuGraphLaunch(e, s);                                                                               \
	expect("call cuGraphLaunch graph stream=%lu", P(s));
	REPLAY(cuGraphInstantiate, NULL, NULL, 0)
	REPLAY(cuGraphInstantiate_v2, NULL, NULL, 0)
	REPLAY(cuGraphInstantiateWithFlags, 0)
	REPLAY(cuGraphInstantiateWithParams, NULL)
	REPLAY(cuGraphInstantiateWithParams_ptsz, NULL)
	cuGraphLaunch_ptsz(e, s);
	expect("call cuGraphLaunch_ptsz graph stream=%lu", P(s));
	SIMPLE(cuGraphExecUpdate, "graph", e, g, NULL, NULL)
	SIMPLE(cuGraphExecUpdate_v2, "graph", e, g, NULL)
	SIMPLE(cuGraphExecDestroy, "graph", e)
	SIMPLE(cuGraphDestroy, "graph", g)
	SIMPLE(cuGraphCreate, "graph", &g, 0)
#define NODE(name)                                                                                         \
	name(&node, g, NULL, 0, &params);                                                                  \
	expect("call " #name " graph " SHOWN " grid_x=2 grid_y=3 grid_z=4 block_x=5 block_y=6 block_z=7 "   \
	       "shared_bytes=80");
	NODE(cuGraphAddKernelNode)
	NODE(cuGraphAddKernelNode_v2)
	nodes();
}

static void replays(void)
{
	CUstream side;
	CUevent fork, join;
	CUgraph g;
	CUgraphExec e;

	cuStreamCreate(&side, 1);
	cuEventCreate(&fork, 0);
	cuEventCreate(&join, 0);
	cuStreamBeginCapture_v2(s, 0);
	cuLaunchKernel(f, 100, 1, 1, 1, 1, 1, 0, s, NULL, NULL);
	cuEventRecord(fork, s);
	cuStreamWaitEvent(side, fork, 0); /* the other stream joins the capture */
	cuLaunchKernel(f, 200, 1, 1, 1, 1, 1, 0, side, NULL, NULL);
	cuMemsetD8Async(1, 0, 64, side);
	cuEventRecord(join, side);
	cuStreamWaitEvent(s, join, 0);
	cuStreamEndCapture(s, &g);
	cuLaunchKernel(f, 300, 1, 1, 1, 1, 1, 0, side, NULL, NULL); /* runs */
	cuGraphInstantiateWithFlags(&e, g, 0);
	cuGraphDestroy(g);
	for (int i = 0; i < 4; i++)
		cuGraphLaunch(e, s);
	cuStreamSynchronize(s);
	cuStreamSynchronize(side);
	cuGraphExecDestroy(e);
}
