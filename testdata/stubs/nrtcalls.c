/* Calls every function of the stub libnrt, and says what a recording of that has
 * to hold (expect.h).
 *
 *   nrtcalls all [wait]     every function
 *   nrtcalls times [wait]   executions of known length, before and after the job
 *                           asks to be told of asynchronous ones
 *   nrtcalls late [wait]    executions of a model loaded before "ready" */
#include "expect.h"
#include "nrt.h"

#define P(x) ((unsigned long)(uintptr_t)(x))

static nrt_model_t *model, *ranked;
static nrt_tensor_t *tensor, *host, *part;
static char buffer[64];

static void models(void)
{
	nrt_model_t *bad;

	nrt_init(0, "2.0", "2.0");
	expect("call nrt_init context");
	nrt_load(buffer, 1234, 3, 1, &model);
	expect("call nrt_load module bytes=1234 device_id=3 context=%lu", P(model));
	nrt_load(buffer, 0, 3, 1, &bad);
	expect("call nrt_load module bytes=0 status=error error_code=2");
	nrt_load_collectives(buffer, 4321, 5, 2, 6, 8, &ranked);
	expect("call nrt_load_collectives module bytes=4321 device_id=5 context=%lu", P(ranked));
}

static void executions(void)
{
	nrta_seq_t sequence;

	nrt_execute(model, buffer, buffer);
	expect("call nrt_execute launch device_id=3 context=%lu", P(model));
	nrt_execute_repeat(ranked, buffer, buffer, 2);
	expect("call nrt_execute_repeat launch device_id=5 context=%lu", P(ranked));
	nrt_execute(model, NULL, buffer);
	expect("call nrt_execute launch status=error error_code=1002 context=%lu", P(model));
	nrta_execute_schedule(model, buffer, buffer, 0, NULL, &sequence);
	expect("call nrta_execute_schedule launch device_id=3 context=%lu", P(model));
}

static void tensors(void)
{
	nrta_seq_t sequence;

	nrt_tensor_allocate(0, 3, 7001, "a", &tensor);
	expect("call nrt_tensor_allocate alloc bytes=7001 device_id=3");
	expect("memory alloc device 7001 %lu 3", P(tensor));
	nrt_tensor_allocate(1, 3, 7002, "b", &host);
	expect("call nrt_tensor_allocate alloc bytes=7002");
	expect("memory alloc host 7002 %lu -", P(host));
	nrt_tensor_allocate(0, 3, 1ul << 50, "c", &part);
	expect("call nrt_tensor_allocate alloc status=error error_code=4");
	expect("memory out_of_memory device %lu 0 3", 1ul << 50);
	nrt_tensor_allocate_slice(tensor, 8, 100, "d", &part);
	expect("call nrt_tensor_allocate_slice alloc bytes=100");
	nrt_tensor_allocate_empty("e", &part);
	expect("call nrt_tensor_allocate_empty alloc");
	nrt_tensor_attach_buffer(part, buffer, 64);
	expect("call nrt_tensor_attach_buffer alloc bytes=64");
#define MOVED(call, name, category, bytes, way)                                                            \
	call;                                                                                              \
	expect("call " name " " category " bytes=" bytes " direction=" way)
	MOVED(nrt_tensor_write(tensor, buffer, 0, 61), "nrt_tensor_write", "copy", "61", "host_to_device");
	MOVED(nrt_tensor_read(tensor, buffer, 0, 62), "nrt_tensor_read", "copy", "62", "device_to_host");
	MOVED(nrt_tensor_write_batch(buffer, 1, false), "nrt_tensor_write_batch", "copy", "-", "host_to_device");
	MOVED(nrt_tensor_read_batch(buffer, 1, false), "nrt_tensor_read_batch", "copy", "-", "device_to_host");
	MOVED(nrt_tensor_copy(tensor, 0, tensor, 0, 63), "nrt_tensor_copy", "copy", "63", "device_to_device");
	MOVED(nrt_tensor_memset(tensor, 0, 1, 64), "nrt_tensor_memset", "set", "64", "-");
	MOVED(nrt_memcpy_to_device(buffer, buffer, 65), "nrt_memcpy_to_device", "copy", "65", "host_to_device");
	MOVED(nrta_tensor_read(buffer, tensor, 0, 66, 0, NULL, &sequence), "nrta_tensor_read", "copy", "66", "device_to_host");
	MOVED(nrta_tensor_write(tensor, buffer, 0, 67, 0, NULL, &sequence), "nrta_tensor_write", "copy", "67", "host_to_device");
	MOVED(nrta_tensor_copy(tensor, 0, tensor, 0, 68, 0, NULL, &sequence), "nrta_tensor_copy", "copy", "68", "device_to_device");
	expect("memory free device 7001 %lu 3", P(tensor));
	nrt_tensor_free(&tensor);
	expect("call nrt_tensor_free free");
	expect("memory free host 7002 %lu -", P(host));
	nrt_tensor_free(&host);
	expect("call nrt_tensor_free free");
}

static void collectives(void)
{
	nrta_seq_t sequence;
	void *context;

	nrt_build_global_comm(3, 1, 4);
	expect("call nrt_build_global_comm init device_id=3 rank=1 ranks=4");
	nrt_barrier(3, 1, 4);
	expect("call nrt_barrier barrier device_id=3 rank=1 ranks=4");
	nrt_all_gather(3, 1, 4, 999, buffer, buffer);
	expect("call nrt_all_gather allgather device_id=3 rank=1 ranks=4 bytes=999");
	nrta_cc_prepare(NULL, NULL, NULL, 0, 0, 0, &context);
	expect("call nrta_cc_prepare issue");
	nrta_cc_schedule(&context, 0, NULL, &sequence);
	expect("call nrta_cc_schedule issue");
	nrt_async_drain_queued_execs(3);
	expect("call nrt_async_drain_queued_execs sync device_id=3");
	nrt_cc_global_comm_init(3, 2, 5);
	expect("call nrt_cc_global_comm_init init device_id=3 rank=2 ranks=5");
}

static void completions(void)
{
	nrta_seq_t sequence;
	bool done;
	int fd;

	nrta_is_completed(76, &done);
	expect("call nrta_is_completed event");
	nrta_get_sequence(3, 0, 0, &sequence);
	expect("call nrta_get_sequence event device_id=3");
	nrta_get_completion_handle(78, &fd);
	expect("call nrta_get_completion_handle event");
	nrta_get_completion_handle(0, &fd);
	expect("call nrta_get_completion_handle event status=error error_code=2");
}

/* The runtime's own profilers, one after the other. */
static void profilers(void)
{
	char *events;
	size_t bytes;

	nrt_inspect_begin();
	expect("call nrt_inspect_begin profile");
	nrt_inspect_stop();
	expect("call nrt_inspect_stop profile");
	nrt_inspect_begin_with_options(NULL);
	expect("call nrt_inspect_begin_with_options profile");
	nrt_profile_start(model, "file");
	expect("call nrt_profile_start profile context=%lu", P(model));
	nrt_profile_stop("file");
	expect("call nrt_profile_stop profile");
	nrt_profile_continuous_start(NULL);
	expect("call nrt_profile_continuous_start profile");
	nrt_profile_continuous_save(4, NULL);
	expect("call nrt_profile_continuous_save profile device_id=4");
	nrt_profile_continuous_stop();
	expect("call nrt_profile_continuous_stop profile");
	nrt_sys_trace_start(NULL);
	expect("call nrt_sys_trace_start profile");
	nrt_sys_trace_fetch_events(&events, &bytes, NULL);
	expect("call nrt_sys_trace_fetch_events profile");
	nrt_sys_trace_stop();
	expect("call nrt_sys_trace_stop profile");
}

static int late(int wait)
{
	nrt_load(buffer, 1234, 3, 1, &model);
	ready(wait);
	for (int i = 0; i < 10; i++) {
		nrt_execute(model, buffer, buffer);
		expect("call nrt_execute launch device_id=- context=%lu device_time_method=bounded", P(model));
	}
	tell_expected();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "late") == 0)
		return late(argc > 2);
	ready(argc > 2 && strcmp(argv[argc - 1], "wait") == 0);
	models();
	executions();
	if (argc > 1 && strcmp(argv[1], "all") == 0) {
		tensors();
		collectives();
		completions();
		profilers();
	}
	nrt_register_async_exec_callback(NULL, NULL);
	expect("call nrt_register_async_exec_callback context");
	nrt_execute(model, buffer, buffer);
	expect("call nrt_execute launch device_id=3 device_time_method=-");
	nrt_unload(model);
	expect("call nrt_unload module context=%lu", P(model));
	nrt_close();
	expect("call nrt_close context");
	tell_expected();
	return 0;
}
