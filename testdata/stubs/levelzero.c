/* A stub of libze_loader: the entry points of Level Zero, and behind them the
 * stub device (device.h). Nothing is computed. The signatures are those of
 * ze_api.h; newer functions are those of 1.32.
 *
 * Kernels take 2 ms. A tick of the device is 10 ns, its kernel timestamps have
 * 32 bits and begin shortly before they wrap. */
#include "device.h"

#include <level_zero/ze_api.h>
#include <stdlib.h>
#include <string.h>

#define OK ZE_RESULT_SUCCESS
#define KERNEL_NS 2000000
#define COPY_NS 1000000
#define OUT_OF_MEMORY_BYTES (1ul << 50)

struct kernel { const char *name; };
struct zeevent { struct event *before, *after; };
struct list { struct stream *stream; struct graph *graph; };

static ze_result_t make(void *out, size_t bytes)
{
	void *made = calloc(1, bytes);

	memcpy(out, &made, sizeof(made));
	return OK;
}

static ze_result_t handle(void *out)
{
	uint64_t made = fresh();

	memcpy(out, &made, sizeof(made));
	return OK;
}

ze_result_t zeInit(ze_init_flags_t flags) { (void)flags; return OK; }
ze_result_t zeDriverGet(uint32_t *n, ze_driver_handle_t *drivers)
{
	*n = 1;
	return drivers ? handle(drivers) : OK;
}

ze_result_t zeDeviceGet(ze_driver_handle_t driver, uint32_t *n, ze_device_handle_t *devices)
{
	(void)driver;
	*n = 2;
	for (int i = 0; devices && i < 2; i++)
		devices[i] = (void *)(0xd0000ul + 16 * i);
	return OK;
}

ze_result_t zeDeviceGetProperties(ze_device_handle_t device, ze_device_properties_t *p)
{
	(void)device;
	p->timerResolution = p->stype == ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES_1_2 ? 100000000 : 10;
	p->kernelTimestampValidBits = 32;
	return OK;
}

ze_result_t zeContextCreate(ze_driver_handle_t d, const ze_context_desc_t *c, ze_context_handle_t *out) { (void)d, (void)c; return handle(out); }
ze_result_t zeContextCreateEx(ze_driver_handle_t d, const ze_context_desc_t *c, uint32_t n, ze_device_handle_t *devices, ze_context_handle_t *out)
{
	(void)d, (void)c, (void)n, (void)devices;
	return handle(out);
}
ze_result_t zeContextDestroy(ze_context_handle_t c) { (void)c; return OK; }
ze_result_t zeContextMakeMemoryResident(ze_context_handle_t c, ze_device_handle_t d, void *p, size_t n) { (void)c, (void)d, (void)p, (void)n; return OK; }
ze_result_t zeContextEvictMemory(ze_context_handle_t c, ze_device_handle_t d, void *p, size_t n) { (void)c, (void)d, (void)p, (void)n; return OK; }

/* Queues are streams, and so are immediate lists. */
static ze_result_t new_stream(void *out)
{
	struct list *made;

	make(out, sizeof(struct list));
	memcpy(&made, out, sizeof(made));
	made->stream = stream_new();
	return OK;
}
ze_result_t zeCommandQueueCreate(ze_context_handle_t c, ze_device_handle_t d, const ze_command_queue_desc_t *q, ze_command_queue_handle_t *out)
{
	(void)c, (void)d, (void)q;
	return new_stream(out);
}
ze_result_t zeCommandListCreateImmediate(ze_context_handle_t c, ze_device_handle_t d, const ze_command_queue_desc_t *q, ze_command_list_handle_t *out)
{
	(void)c, (void)d, (void)q;
	return new_stream(out);
}
ze_result_t zeCommandListCreate(ze_context_handle_t c, ze_device_handle_t d, const ze_command_list_desc_t *l, ze_command_list_handle_t *out)
{
	(void)c, (void)d, (void)l;
	make(out, sizeof(struct list));
	((struct list *)*out)->graph = graph_new();
	return OK;
}
ze_result_t zeCommandQueueDestroy(ze_command_queue_handle_t q) { stream_free(((struct list *)q)->stream); return OK; }
ze_result_t zeCommandListClose(ze_command_list_handle_t l) { (void)l; return OK; }
ze_result_t zeCommandListReset(ze_command_list_handle_t l) { ((struct list *)l)->graph = graph_new(); return OK; }
ze_result_t zeCommandListDestroy(ze_command_list_handle_t l) { (void)l; return OK; }

static ze_result_t append(void *handle, const char *name, uint64_t ns, void *event)
{
	struct list *l = handle;
	struct zeevent *e = event;

	if (l->graph) {
		graph_add(l->graph, (struct work){ name, ns });
		return OK;
	}
	if (e)
		event_record(e->before, l->stream);
	stream_give(l->stream, (struct work){ name, ns });
	if (e)
		event_record(e->after, l->stream);
	return OK;
}

static ze_result_t execute(struct list *on, uint32_t n, ze_command_list_handle_t *lists, struct zeevent *e)
{
	for (uint32_t i = 0; i < n; i++)
		graph_give(graph_copy(((struct list *)lists[i])->graph), on->stream);
	if (e)
		event_record(e->after, on->stream);
	return OK;
}

ze_result_t zeCommandQueueExecuteCommandLists(ze_command_queue_handle_t q, uint32_t n, ze_command_list_handle_t *lists, ze_fence_handle_t fence)
{
	return execute((struct list *)q, n, lists, (struct zeevent *)fence);
}
ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t l, uint32_t n, ze_command_list_handle_t *lists,
							ze_event_handle_t e, uint32_t w, ze_event_handle_t *waits)
{
	(void)w, (void)waits;
	return execute((struct list *)l, n, lists, (struct zeevent *)e);
}

ze_result_t zeCommandListImmediateAppendCommandListsWithParameters(ze_command_list_handle_t l, uint32_t n, ze_command_list_handle_t *lists,
								   const void *next, ze_event_handle_t e, uint32_t w, ze_event_handle_t *waits)
{
	(void)next, (void)w, (void)waits;
	return execute((struct list *)l, n, lists, (struct zeevent *)e);
}

/* Captures. What a list is given meanwhile goes into its graph. */
ze_result_t zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t l, const void *next)
{
	(void)next;
	((struct list *)l)->graph = graph_new();
	return OK;
}
ze_result_t zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t l, void *graph, const void *next)
{
	(void)next;
	((struct list *)l)->graph = graph;
	return OK;
}
ze_result_t zeCommandListEndGraphCaptureExt(ze_command_list_handle_t l, const void *next, void **graph)
{
	(void)next;
	*graph = ((struct list *)l)->graph;
	((struct list *)l)->graph = NULL;
	return OK;
}
ze_result_t zeGraphInstantiateExt(void *graph, const void *next, void **executable) { (void)next; *executable = graph_copy(graph); return OK; }
ze_result_t zeCommandListAppendGraphExt(ze_command_list_handle_t l, void *executable, const void *next, ze_event_handle_t e, uint32_t w, ze_event_handle_t *waits)
{
	(void)next, (void)w, (void)waits;
	graph_give(executable, ((struct list *)l)->stream);
	if (e)
		event_record(((struct zeevent *)e)->after, ((struct list *)l)->stream);
	return OK;
}
ze_result_t zeGraphDestroyExt(void *graph) { (void)graph; return OK; }
ze_result_t zeExecutableGraphDestroyExt(void *executable) { (void)executable; return OK; }

/* Modules and kernels. */
ze_result_t zeModuleCreate(ze_context_handle_t c, ze_device_handle_t d, const ze_module_desc_t *m, ze_module_handle_t *out, ze_module_build_log_handle_t *log)
{
	(void)c, (void)d, (void)m, (void)log;
	return handle(out);
}
ze_result_t zeModuleDynamicLink(uint32_t n, ze_module_handle_t *m, ze_module_build_log_handle_t *log) { (void)n, (void)m, (void)log; return OK; }
ze_result_t zeModuleDestroy(ze_module_handle_t m) { (void)m; return OK; }
ze_result_t zeKernelCreate(ze_module_handle_t m, const ze_kernel_desc_t *d, ze_kernel_handle_t *out)
{
	(void)m;
	if (strcmp(d->pKernelName, "absent") == 0)
		return ZE_RESULT_ERROR_INVALID_KERNEL_NAME;
	make(out, sizeof(struct kernel));
	((struct kernel *)*out)->name = strdup(d->pKernelName);
	return OK;
}
ze_result_t zeKernelGetName(ze_kernel_handle_t k, size_t *n, char *name)
{
	const char *is = ((struct kernel *)k)->name;

	*n = strlen(is) + 1;
	if (name)
		strcpy(name, is);
	return OK;
}
ze_result_t zeKernelDestroy(ze_kernel_handle_t k) { (void)k; return OK; }
ze_result_t zeKernelSetGroupSize(ze_kernel_handle_t k, uint32_t x, uint32_t y, uint32_t z) { (void)k, (void)x, (void)y, (void)z; return OK; }

#define WAITS uint32_t n, ze_event_handle_t *w
#define NAME(k) (((struct kernel *)(k))->name)
ze_result_t zeCommandListAppendLaunchKernel(ze_command_list_handle_t l, ze_kernel_handle_t k, const ze_group_count_t *g, ze_event_handle_t e, WAITS)
{
	/* As many microseconds as its grid is wide, and two milliseconds at least. */
	uint64_t wide = g ? g->groupCountX * 1000ull : 0;

	(void)n, (void)w;
	return g ? append(l, NAME(k), wide > KERNEL_NS ? wide : KERNEL_NS, e) : ZE_RESULT_ERROR_INVALID_NULL_POINTER;
}
ze_result_t zeCommandListAppendLaunchCooperativeKernel(ze_command_list_handle_t l, ze_kernel_handle_t k, const ze_group_count_t *g, ze_event_handle_t e, WAITS) { (void)g, (void)n, (void)w; return append(l, NAME(k), KERNEL_NS, e); }
ze_result_t zeCommandListAppendLaunchKernelIndirect(ze_command_list_handle_t l, ze_kernel_handle_t k, const ze_group_count_t *g, ze_event_handle_t e, WAITS) { (void)g, (void)n, (void)w; return append(l, NAME(k), KERNEL_NS, e); }
ze_result_t zeCommandListAppendLaunchKernelWithParameters(ze_command_list_handle_t l, ze_kernel_handle_t k, const ze_group_count_t *g, const void *next, ze_event_handle_t e, WAITS) { (void)g, (void)next, (void)n, (void)w; return append(l, NAME(k), KERNEL_NS, e); }
typedef struct { uint32_t x, y, z; } group_size;
ze_result_t zeCommandListAppendLaunchKernelWithArguments(ze_command_list_handle_t l, ze_kernel_handle_t k, const ze_group_count_t g, const group_size b, void **a, const void *next, ze_event_handle_t e, WAITS) { (void)g, (void)b, (void)a, (void)next, (void)n, (void)w; return append(l, NAME(k), KERNEL_NS, e); }
ze_result_t zeCommandListAppendLaunchMultipleKernelsIndirect(ze_command_list_handle_t l, uint32_t m, ze_kernel_handle_t *k, const uint32_t *c, const ze_group_count_t *g, ze_event_handle_t e, WAITS) { (void)m, (void)c, (void)g, (void)n, (void)w; return append(l, NAME(k[0]), KERNEL_NS, e); }

#define COPY(name, ...) ze_result_t name(ze_command_list_handle_t l, __VA_ARGS__, ze_event_handle_t e, WAITS)
#define COPIED { (void)n, (void)w; return append(l, "copy", COPY_NS, e); }
#pragma GCC diagnostic ignored "-Wunused-parameter"
COPY(zeCommandListAppendMemoryCopy, void *to, const void *from, size_t bytes) COPIED
COPY(zeCommandListAppendMemoryCopyFromContext, void *to, ze_context_handle_t c, const void *from, size_t bytes) COPIED
COPY(zeCommandListAppendMemoryFill, void *p, const void *pattern, size_t size, size_t bytes) COPIED
COPY(zeCommandListAppendMemoryCopyRegion, void *to, const ze_copy_region_t *r, uint32_t p, uint32_t s, const void *from, const ze_copy_region_t *q, uint32_t t, uint32_t u) COPIED
COPY(zeCommandListAppendImageCopy, ze_image_handle_t to, ze_image_handle_t from) COPIED
COPY(zeCommandListAppendImageCopyRegion, ze_image_handle_t to, ze_image_handle_t from, const ze_image_region_t *r, const ze_image_region_t *q) COPIED
COPY(zeCommandListAppendImageCopyToMemory, void *to, ze_image_handle_t from, const ze_image_region_t *r) COPIED
COPY(zeCommandListAppendImageCopyFromMemory, ze_image_handle_t to, const void *from, const ze_image_region_t *r) COPIED
COPY(zeCommandListAppendImageCopyToMemoryExt, void *to, ze_image_handle_t from, const ze_image_region_t *r, uint32_t p, uint32_t s) COPIED
COPY(zeCommandListAppendImageCopyFromMemoryExt, ze_image_handle_t to, const void *from, const ze_image_region_t *r, uint32_t p, uint32_t s) COPIED
COPY(zeCommandListAppendMemoryCopyWithParameters, void *to, const void *from, size_t bytes, const void *next) COPIED
COPY(zeCommandListAppendMemoryFillWithParameters, void *p, const void *pattern, size_t size, size_t bytes, const void *next) COPIED
COPY(zeCommandListAppendHostFunction, void *f, void *data, const void *next) { return OK; }
ze_result_t zeCommandListAppendMemoryPrefetch(ze_command_list_handle_t l, const void *p, size_t n) { return append(l, "prefetch", COPY_NS, NULL); }

/* Memory. */
static ze_result_t allocate(size_t bytes, void **out)
{
	return bytes >= OUT_OF_MEMORY_BYTES ? ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY : handle(out);
}
ze_result_t zeMemAllocDevice(ze_context_handle_t c, const ze_device_mem_alloc_desc_t *d, size_t n, size_t a, ze_device_handle_t v, void **out) { return allocate(n, out); }
ze_result_t zeMemAllocHost(ze_context_handle_t c, const ze_host_mem_alloc_desc_t *h, size_t n, size_t a, void **out) { return allocate(n, out); }
ze_result_t zeMemAllocShared(ze_context_handle_t c, const ze_device_mem_alloc_desc_t *d, const ze_host_mem_alloc_desc_t *h, size_t n, size_t a, ze_device_handle_t v, void **out) { return allocate(n, out); }
ze_result_t zeMemFree(ze_context_handle_t c, void *p) { return OK; }
ze_result_t zeMemFreeExt(ze_context_handle_t c, const ze_memory_free_ext_desc_t *d, void *p) { return OK; }
ze_result_t zePhysicalMemCreate(ze_context_handle_t c, ze_device_handle_t v, ze_physical_mem_desc_t *d, ze_physical_mem_handle_t *out) { return handle(out); }
ze_result_t zePhysicalMemDestroy(ze_context_handle_t c, ze_physical_mem_handle_t p) { return OK; }
ze_result_t zeVirtualMemReserve(ze_context_handle_t c, const void *start, size_t n, void **out) { return handle(out); }
ze_result_t zeVirtualMemFree(ze_context_handle_t c, const void *p, size_t n) { return OK; }
ze_result_t zeVirtualMemMap(ze_context_handle_t c, const void *p, size_t n, ze_physical_mem_handle_t m, size_t o, ze_memory_access_attribute_t a) { return OK; }
ze_result_t zeVirtualMemUnmap(ze_context_handle_t c, const void *p, size_t n) { return OK; }
ze_result_t zeImageCreate(ze_context_handle_t c, ze_device_handle_t v, const ze_image_desc_t *d, ze_image_handle_t *out) { return handle(out); }
ze_result_t zeImageDestroy(ze_image_handle_t i) { return OK; }

/* Events and waits. */
ze_result_t zeEventPoolCreate(ze_context_handle_t c, const ze_event_pool_desc_t *d, uint32_t n, ze_device_handle_t *v, ze_event_pool_handle_t *out) { return handle(out); }
static ze_result_t new_event(void *out)
{
	struct zeevent *made;

	make(out, sizeof(struct zeevent));
	memcpy(&made, out, sizeof(made));
	*made = (struct zeevent){ event_new(), event_new() };
	return OK;
}
ze_result_t zeEventCreate(ze_event_pool_handle_t p, const ze_event_desc_t *d, ze_event_handle_t *out) { return new_event(out); }
ze_result_t zeFenceCreate(ze_command_queue_handle_t q, const ze_fence_desc_t *d, ze_fence_handle_t *out) { return new_event(out); }

static ze_result_t await(void *event, uint64_t timeout)
{
	struct zeevent *e = event;

	if (timeout == 0)
		return event_passed(e->after) ? OK : ZE_RESULT_NOT_READY;
	event_wait(e->after);
	return OK;
}
ze_result_t zeEventHostSynchronize(ze_event_handle_t e, uint64_t timeout) { return await(e, timeout); }
ze_result_t zeEventQueryStatus(ze_event_handle_t e) { return await(e, 0); }
ze_result_t zeFenceHostSynchronize(ze_fence_handle_t f, uint64_t timeout) { return await(f, timeout); }
ze_result_t zeFenceQueryStatus(ze_fence_handle_t f) { return await(f, 0); }
ze_result_t zeCommandQueueSynchronize(ze_command_queue_handle_t q, uint64_t timeout) { stream_wait(((struct list *)q)->stream); return OK; }
ze_result_t zeDeviceSynchronize(ze_device_handle_t d) { device_wait(); return OK; }
ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t l, uint64_t timeout) { stream_wait(((struct list *)l)->stream); return OK; }
ze_result_t zeEventQueryKernelTimestamp(ze_event_handle_t handle, ze_kernel_timestamp_result_t *r)
{
	struct zeevent *e = (struct zeevent *)handle;

	r->global.kernelStart = r->context.kernelStart = 0xfffffff0;
	r->global.kernelEnd = (r->global.kernelStart + (uint64_t)(event_elapsed_ms(e->before, e->after) * 1e5)) & 0xffffffff;
	r->context.kernelEnd = r->global.kernelEnd + 5;
	return OK;
}
ze_result_t zeEventHostSignal(ze_event_handle_t e) { return OK; }
ze_result_t zeEventHostReset(ze_event_handle_t e) { return OK; }
ze_result_t zeEventDestroy(ze_event_handle_t e) { return OK; }
ze_result_t zeFenceReset(ze_fence_handle_t f) { return OK; }
ze_result_t zeFenceDestroy(ze_fence_handle_t f) { return OK; }
ze_result_t zeCommandListAppendSignalEvent(ze_command_list_handle_t l, ze_event_handle_t e) { return OK; }
ze_result_t zeCommandListAppendEventReset(ze_command_list_handle_t l, ze_event_handle_t e) { return OK; }
ze_result_t zeCommandListAppendWaitOnEvents(ze_command_list_handle_t l, uint32_t n, ze_event_handle_t *e) { return OK; }
ze_result_t zeCommandListAppendBarrier(ze_command_list_handle_t l, ze_event_handle_t e, uint32_t n, ze_event_handle_t *w)
{
	if (e && ((struct list *)l)->stream)
		event_record(((struct zeevent *)e)->after, ((struct list *)l)->stream);
	return OK;
}
ze_result_t zeCommandListAppendMemoryRangesBarrier(ze_command_list_handle_t l, uint32_t m, const size_t *s, const void **r, ze_event_handle_t e, WAITS) { return OK; }
ze_result_t zeCommandListAppendQueryKernelTimestamps(ze_command_list_handle_t l, uint32_t m, ze_event_handle_t *v, void *to, const size_t *o, ze_event_handle_t e, WAITS) { return OK; }
ze_result_t zeCommandListAppendWriteGlobalTimestamp(ze_command_list_handle_t l, uint64_t *to, ze_event_handle_t e, WAITS) { return OK; }
