/* Calls every function of the stub of Level Zero, and says what a recording of
 * that has to hold (expect.h).
 *
 *   levelzerocalls all [wait]     every function
 *   levelzerocalls times [wait]   work of known length, waits, fences, timestamps
 *   levelzerocalls late [wait]    launches by handles that were made before "ready" */
#include "expect.h"

#include <level_zero/ze_api.h>

#define P(x) ((unsigned long)(uintptr_t)(x))

typedef struct { uint32_t x, y, z; } group_size;
ze_result_t zeCommandListHostSynchronize(ze_command_list_handle_t, uint64_t);
ze_result_t zeCommandListImmediateAppendCommandListsExp(ze_command_list_handle_t, uint32_t, ze_command_list_handle_t *,
							ze_event_handle_t, uint32_t, ze_event_handle_t *);
ze_result_t zeCommandListAppendLaunchKernelWithParameters(ze_command_list_handle_t, ze_kernel_handle_t, const ze_group_count_t *,
							  const void *, ze_event_handle_t, uint32_t, ze_event_handle_t *);
ze_result_t zeCommandListAppendLaunchKernelWithArguments(ze_command_list_handle_t, ze_kernel_handle_t, ze_group_count_t, group_size,
							 void **, const void *, ze_event_handle_t, uint32_t, ze_event_handle_t *);

ze_result_t zeCommandListAppendMemoryCopyWithParameters(ze_command_list_handle_t, void *, const void *, size_t, const void *,
							ze_event_handle_t, uint32_t, ze_event_handle_t *);
ze_result_t zeCommandListAppendMemoryFillWithParameters(ze_command_list_handle_t, void *, const void *, size_t, size_t, const void *,
							ze_event_handle_t, uint32_t, ze_event_handle_t *);
ze_result_t zeCommandListAppendHostFunction(ze_command_list_handle_t, void *, void *, const void *, ze_event_handle_t, uint32_t,
					    ze_event_handle_t *);
ze_result_t zeCommandListImmediateAppendCommandListsWithParameters(ze_command_list_handle_t, uint32_t, ze_command_list_handle_t *,
								   const void *, ze_event_handle_t, uint32_t, ze_event_handle_t *);
ze_result_t zeCommandListBeginGraphCaptureExt(ze_command_list_handle_t, const void *);
ze_result_t zeCommandListBeginCaptureIntoGraphExt(ze_command_list_handle_t, void *, const void *);
ze_result_t zeCommandListEndGraphCaptureExt(ze_command_list_handle_t, const void *, void **);
ze_result_t zeGraphInstantiateExt(void *, const void *, void **);
ze_result_t zeCommandListAppendGraphExt(ze_command_list_handle_t, void *, const void *, ze_event_handle_t, uint32_t, ze_event_handle_t *);
ze_result_t zeGraphDestroyExt(void *);
ze_result_t zeExecutableGraphDestroyExt(void *);
ze_result_t zeDeviceSynchronize(ze_device_handle_t);

static ze_driver_handle_t driver;
static ze_device_handle_t devices[2];
static ze_context_handle_t context, other;
static ze_command_queue_handle_t queue;
static ze_command_list_handle_t now, later;
static ze_module_handle_t module;
static ze_kernel_handle_t kernel;
static ze_event_handle_t e, *none;
static ze_event_pool_handle_t pool;

/* A call of which only its category is to be told. */
#define PLAIN(name, category, ...)                                                                         \
	do {                                                                                               \
		name(__VA_ARGS__);                                                                         \
		expect("call " #name " " category);                                                        \
	} while (0)

/* The same, on a list or queue. */
#define ON(name, category, on, ...)                                                                        \
	do {                                                                                               \
		name(on, ##__VA_ARGS__);                                                                   \
		expect("call " #name " " category " stream=%lu", P(on));                                   \
	} while (0)

#define IN_CONTEXT expect("also context=%lu", P(context))

static void places(void)
{
	ze_device_properties_t properties = { .stype = ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES };
	ze_command_queue_desc_t description = { .mode = ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS };
	ze_command_list_desc_t list = { 0 };
	ze_context_desc_t c = { 0 };
	uint32_t n = 2;

	zeInit(0);
	zeDriverGet(&n, NULL);
	n = 1;
	zeDriverGet(&n, &driver);
	zeDeviceGet(driver, &n, NULL);
	expect("call zeDeviceGet context device_id=-");
	zeDeviceGet(driver, &n, devices);
	expect("call zeDeviceGet context device_id=-");
	PLAIN(zeDeviceGetProperties, "context", devices[0], &properties);
	PLAIN(zeContextCreate, "context", driver, &c, &context);
	IN_CONTEXT;
	PLAIN(zeContextCreateEx, "context", driver, &c, 1, devices, &other);
	expect("also context=%lu", P(other));
	zeCommandQueueCreate(context, devices[1], &description, &queue);
	expect("call zeCommandQueueCreate stream device_id=1 stream=%lu", P(queue));
	IN_CONTEXT;
	zeCommandListCreateImmediate(context, devices[1], &description, &now);
	expect("call zeCommandListCreateImmediate stream device_id=1 stream=%lu", P(now));
	IN_CONTEXT;
	zeCommandListCreate(context, devices[0], &list, &later);
	expect("call zeCommandListCreate graph device_id=0 stream=%lu", P(later));
	IN_CONTEXT;
	zeEventPoolCreate(context, NULL, 1, devices, &pool);
	zeEventCreate(pool, NULL, &e);
}

static void kernels(void)
{
	ze_kernel_desc_t description = { .pKernelName = "_Z5scalePfi" };
	ze_kernel_handle_t gone;
	size_t bytes = 0;
	char name[64];

	zeModuleCreate(context, devices[1], NULL, &module, NULL);
	expect("call zeModuleCreate module device_id=1");
	IN_CONTEXT;
	PLAIN(zeModuleDynamicLink, "module", 1, &module, NULL);
	PLAIN(zeKernelCreate, "module", module, &description, &kernel);
	description.pKernelName = "absent";
	zeKernelCreate(module, &description, &gone);
	expect("call zeKernelCreate module status=error error_code=%d", ZE_RESULT_ERROR_INVALID_KERNEL_NAME);
	PLAIN(zeKernelGetName, "module", kernel, &bytes, NULL);
	PLAIN(zeKernelGetName, "module", kernel, &bytes, name);
}

#define SHOWN "name=scale(float*,~int) name_source=getfunction symbol=_Z5scalePfi device_id=%d stream=%lu"
static void launches(ze_command_list_handle_t list, const char *category, int device)
{
	ze_group_count_t groups = { 3, 4, 5 };

	PLAIN(zeKernelSetGroupSize, "module", kernel, 32, 2, 1);
	zeCommandListAppendLaunchKernel(list, kernel, &groups, e, 0, none);
	expect("call zeCommandListAppendLaunchKernel %s " SHOWN " grid_x=3 grid_y=4 grid_z=5 block_x=32 block_y=2 block_z=1 work_x=96", category, device, P(list));
	PLAIN(zeKernelSetGroupSize, "module", kernel, 16, 1, 1);
	zeCommandListAppendLaunchCooperativeKernel(list, kernel, &groups, NULL, 0, none);
	expect("call zeCommandListAppendLaunchCooperativeKernel %s " SHOWN " grid_x=3 grid_y=4 grid_z=5 block_x=16 block_y=1 block_z=1 work_x=48", category, device, P(list));
	zeCommandListAppendLaunchKernelIndirect(list, kernel, &groups, NULL, 0, none);
	expect("call zeCommandListAppendLaunchKernelIndirect %s " SHOWN " grid_x=- block_x=16 work_x=-", category, device, P(list));
	zeCommandListAppendLaunchKernelWithParameters(list, kernel, &groups, NULL, NULL, 0, none);
	expect("call zeCommandListAppendLaunchKernelWithParameters %s " SHOWN " grid_x=3 grid_y=4 grid_z=5 block_x=16", category, device, P(list));
	zeCommandListAppendLaunchKernelWithArguments(list, kernel, groups, (group_size){ 8, 9, 10 }, NULL, NULL, NULL, 0, none);
	expect("call zeCommandListAppendLaunchKernelWithArguments %s " SHOWN " grid_x=3 grid_y=4 grid_z=5 block_x=8 block_y=9 block_z=10 work_x=24", category, device, P(list));
	zeCommandListAppendLaunchMultipleKernelsIndirect(list, 1, &kernel, NULL, &groups, NULL, 0, none);
	expect("call zeCommandListAppendLaunchMultipleKernelsIndirect %s " SHOWN " grid_x=-", category, device, P(list));
}

static void copies(void)
{
	ze_copy_region_t flat = { .width = 64, .height = 3 }, deep = { .width = 10, .height = 20, .depth = 30 };
	ze_image_handle_t a, b;
	char bytes[64];

#define COPIED(name, category, count, way, ...)                                                            \
	do {                                                                                               \
		name(now, __VA_ARGS__);                                                                    \
		expect("call " #name " " category " bytes=" count " direction=" way " stream=%lu", P(now)); \
	} while (0)
	COPIED(zeCommandListAppendMemoryCopy, "copy", "1001", "-", bytes, bytes, 1001, NULL, 0, none);
	COPIED(zeCommandListAppendMemoryCopyFromContext, "copy", "1002", "-", bytes, other, bytes, 1002, NULL, 0, none);
	COPIED(zeCommandListAppendMemoryFill, "set", "1003", "-", bytes, bytes, 4, 1003, NULL, 0, none);
	COPIED(zeCommandListAppendMemoryCopyRegion, "copy", "192", "-", bytes, &flat, 0, 0, bytes, &flat, 0, 0, NULL, 0, none);
	COPIED(zeCommandListAppendMemoryCopyRegion, "copy", "6000", "-", bytes, &deep, 0, 0, bytes, &deep, 0, 0, NULL, 0, none);
	COPIED(zeCommandListAppendMemoryCopyWithParameters, "copy", "1005", "-", bytes, bytes, 1005, NULL, NULL, 0, none);
	COPIED(zeCommandListAppendMemoryFillWithParameters, "set", "1006", "-", bytes, bytes, 4, 1006, NULL, NULL, 0, none);
	ON(zeCommandListAppendHostFunction, "callback", now, NULL, NULL, NULL, NULL, 0, none);
	COPIED(zeCommandListAppendMemoryPrefetch, "copy", "1004", "managed", bytes, 1004);
	zeImageCreate(context, devices[0], NULL, &a);
	expect("call zeImageCreate alloc device_id=0");
	IN_CONTEXT;
	zeImageCreate(context, devices[0], NULL, &b);
	expect("call zeImageCreate alloc device_id=0");
	IN_CONTEXT;
	COPIED(zeCommandListAppendImageCopy, "copy", "-", "device_to_device", a, b, NULL, 0, none);
	COPIED(zeCommandListAppendImageCopyRegion, "copy", "-", "device_to_device", a, b, NULL, NULL, NULL, 0, none);
	COPIED(zeCommandListAppendImageCopyToMemory, "copy", "-", "-", bytes, a, NULL, NULL, 0, none);
	COPIED(zeCommandListAppendImageCopyFromMemory, "copy", "-", "-", a, bytes, NULL, NULL, 0, none);
	COPIED(zeCommandListAppendImageCopyToMemoryExt, "copy", "-", "-", bytes, a, NULL, 0, 0, NULL, 0, none);
	COPIED(zeCommandListAppendImageCopyFromMemoryExt, "copy", "-", "-", a, bytes, NULL, 0, 0, NULL, 0, none);
	PLAIN(zeImageDestroy, "free", a);
}

static void memory(void)
{
	ze_physical_mem_desc_t description = { .size = 4096 };
	ze_physical_mem_handle_t physical;
	void *p;

#define ALLOCATED(name, space, device, count, ...)                                                         \
	do {                                                                                               \
		name(context, __VA_ARGS__);                                                                \
		expect("call " #name " alloc bytes=" count " context=%lu", P(context));                    \
		expect("memory alloc " space " " count " %lu " device, P(p));                              \
	} while (0)
	ALLOCATED(zeMemAllocDevice, "device", "1", "5001", NULL, 5001, 0, devices[1], &p);
	PLAIN(zeMemFree, "free", context, p);
	expect("memory free device 5001 %lu 1", P(p));
	ALLOCATED(zeMemAllocHost, "pinned", "-", "5002", NULL, 5002, 0, &p);
	PLAIN(zeMemFreeExt, "free", context, NULL, p);
	expect("memory free pinned 5002 %lu -", P(p));
	ALLOCATED(zeMemAllocShared, "managed", "0", "5003", NULL, NULL, 5003, 0, devices[0], &p);
	zeMemAllocDevice(context, NULL, 1ul << 50, 0, devices[1], &p);
	expect("call zeMemAllocDevice alloc status=error error_code=%d", ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
	expect("memory out_of_memory device %lu 0 1", 1ul << 50);
	zePhysicalMemCreate(context, devices[1], &description, &physical);
	expect("call zePhysicalMemCreate alloc bytes=4096");
	expect("memory alloc device 4096 %lu 1", P(physical));
	zeVirtualMemReserve(context, NULL, 8192, &p);
	expect("call zeVirtualMemReserve alloc bytes=8192");
	expect("memory reserve device 8192 %lu -", P(p));
	zeVirtualMemMap(context, p, 4096, physical, 0, 0);
	expect("call zeVirtualMemMap alloc bytes=4096");
	expect("memory map device 4096 %lu 1", P(p));
	zeVirtualMemUnmap(context, p, 4096);
	expect("call zeVirtualMemUnmap free bytes=4096");
	expect("memory unmap device 4096 %lu -", P(p));
	zeVirtualMemFree(context, p, 8192);
	expect("call zeVirtualMemFree free bytes=8192");
	expect("memory unreserve device 8192 %lu -", P(p));
	PLAIN(zePhysicalMemDestroy, "free", context, physical);
	expect("memory free device 4096 %lu 1", P(physical));
	PLAIN(zeContextMakeMemoryResident, "copy", context, devices[0], p, 77);
	expect("also bytes=77");
	PLAIN(zeContextEvictMemory, "copy", context, devices[0], p, 78);
	expect("also bytes=78");
}

static void waits(void)
{
	ze_kernel_timestamp_result_t timestamp;
	ze_group_count_t groups = { LONG_US, 1, 1 };
	ze_event_handle_t event;
	ze_fence_handle_t fence;
	uint64_t global;

	zeEventCreate(pool, NULL, &event);
	zeFenceCreate(queue, NULL, &fence);
	zeCommandListAppendLaunchKernel(now, kernel, &groups, event, 0, none);
	expect("call zeCommandListAppendLaunchKernel launch " SHOWN, 1, P(now));
	under_way(zeEventQueryStatus(event) == ZE_RESULT_NOT_READY);
	expect("call zeEventQueryStatus event status=not_ready");
	PLAIN(zeEventHostSynchronize, "sync", event, UINT64_MAX);
	PLAIN(zeEventQueryStatus, "event", event);
	PLAIN(zeEventQueryKernelTimestamp, "event", event, &timestamp);
	ON(zeCommandListAppendBarrier, "event", now, event, 0, NULL);
	ON(zeCommandListAppendMemoryRangesBarrier, "event", now, 0, NULL, NULL, NULL, 0, NULL);
	ON(zeCommandListAppendSignalEvent, "event", now, e);
	ON(zeCommandListAppendEventReset, "event", now, e);
	ON(zeCommandListAppendWaitOnEvents, "event", now, 1, &event);
	ON(zeCommandListAppendQueryKernelTimestamps, "event", now, 1, &event, NULL, NULL, NULL, 0, NULL);
	ON(zeCommandListAppendWriteGlobalTimestamp, "event", now, &global, NULL, 0, NULL);
	ON(zeCommandListHostSynchronize, "sync", now, UINT64_MAX);
	ON(zeCommandListClose, "graph", later);
	zeCommandQueueExecuteCommandLists(queue, 1, &later, fence);
	expect("call zeCommandQueueExecuteCommandLists graph device_id=1 stream=%lu", P(queue));
	PLAIN(zeFenceHostSynchronize, "sync", fence, UINT64_MAX);
	PLAIN(zeFenceQueryStatus, "event", fence);
	PLAIN(zeFenceReset, "event", fence);
	zeCommandListImmediateAppendCommandListsExp(now, 1, &later, NULL, 0, NULL);
	expect("call zeCommandListImmediateAppendCommandListsExp graph device_id=1 stream=%lu", P(now));
	ON(zeCommandQueueSynchronize, "sync", queue, UINT64_MAX);
	ON(zeCommandListReset, "graph", later);
	PLAIN(zeEventHostSignal, "event", event);
	PLAIN(zeEventHostReset, "event", event);
	PLAIN(zeEventDestroy, "event", event);
	PLAIN(zeFenceDestroy, "event", fence);
}

/* A launch is captured twice and runs three times. */
static void graphs(void)
{
	ze_group_count_t groups = { 1, 1, 1 };
	void *graph, *executable;

	ON(zeCommandListBeginGraphCaptureExt, "graph", now, NULL);
	zeCommandListAppendLaunchKernel(now, kernel, &groups, NULL, 0, none);
	expect("call zeCommandListAppendLaunchKernel graph " SHOWN, 1, P(now));
	ON(zeCommandListEndGraphCaptureExt, "graph", now, NULL, &graph);
	PLAIN(zeGraphInstantiateExt, "graph", graph, NULL, &executable);
	for (int i = 0; i < 3; i++)
		ON(zeCommandListAppendGraphExt, "graph", now, executable, NULL, NULL, 0, none);
	PLAIN(zeDeviceSynchronize, "sync", devices[1]);
	ON(zeCommandListBeginCaptureIntoGraphExt, "graph", now, graph, NULL);
	ON(zeCommandListEndGraphCaptureExt, "graph", now, NULL, &graph);
	ON(zeCommandListImmediateAppendCommandListsWithParameters, "graph", now, 1, &later, NULL, NULL, 0, NULL);
	ON(zeCommandListHostSynchronize, "sync", now, UINT64_MAX);
	PLAIN(zeExecutableGraphDestroyExt, "graph", executable);
	PLAIN(zeGraphDestroyExt, "graph", graph);
}

/* Nothing is known of the handles: no names, no devices, no blocks. */
static void late(int wait)
{
	ze_group_count_t groups = { 3, 4, 5 };

	places();
	kernels();
	zeKernelSetGroupSize(kernel, 32, 2, 1);
	fclose(expectations); /* nothing of that is recorded */
	expectations = NULL;
	ready(wait);
	for (int i = 0; i < 10; i++) {
		zeCommandListAppendLaunchKernel(now, kernel, &groups, e, 0, none);
		expect("call zeCommandListAppendLaunchKernel launch name_source=unknown device_id=- grid_x=3 block_x=- work_x=- stream=%lu", P(now));
		zeEventHostSynchronize(e, UINT64_MAX);
		expect("call zeEventHostSynchronize sync");
	}
	zeCommandListAppendLaunchKernel(later, kernel, &groups, NULL, 0, none);
	expect("call zeCommandListAppendLaunchKernel launch name_source=unknown device_time_method=- stream=%lu", P(later));
	zeKernelGetName(kernel, &(size_t){ 64 }, (char[64]){ 0 });
	expect("call zeKernelGetName module");
	zeCommandListAppendLaunchKernel(now, kernel, &groups, NULL, 0, none);
	expect("call zeCommandListAppendLaunchKernel launch name=scale(float*,~int) name_source=getfunction device_id=-");
	zeCommandListHostSynchronize(now, UINT64_MAX);
	expect("call zeCommandListHostSynchronize sync");
	tell_expected();
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "late") == 0)
		return late(argc > 2), 0;
	ready(argc > 2 && strcmp(argv[argc - 1], "wait") == 0);
	places();
	kernels();
	launches(now, "launch", 1);
	if (argc > 1 && strcmp(argv[1], "all") == 0) {
		copies();
		memory();
	}
	launches(later, "graph", 0);
	waits();
	graphs();
	PLAIN(zeKernelDestroy, "module", kernel);
	PLAIN(zeModuleDestroy, "module", module);
	ON(zeCommandListDestroy, "graph", later);
	ON(zeCommandQueueDestroy, "stream", queue);
	PLAIN(zeContextDestroy, "context", other);
	expect("also context=%lu", P(other));
	tell_expected();
	return 0;
}
