/* A stub of libnrt, AWS Neuron's runtime: its entry points and a device that
 * sleeps. An execution takes 3 ms and runs within its call; without inputs it
 * fails, as does memory of 1 PiB or more. */
#include "nrt.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-parameter"

static struct stream *core;

static NRT_STATUS run(const char *name, uint64_t ns)
{
	if (!core)
		core = stream_new();
	stream_give(core, (struct work){ name, ns });
	stream_wait(core);
	return NRT_SUCCESS;
}

static NRT_STATUS out(void *where)
{
	uint64_t made = fresh();

	memcpy(where, &made, sizeof(made));
	return NRT_SUCCESS;
}

NRT_STATUS nrt_init(int framework, const char *fw, const char *fal) { return NRT_SUCCESS; }
void nrt_close(void) { }
NRT_STATUS nrt_load(const void *neff, size_t bytes, int32_t vnc, int32_t count, nrt_model_t **model) { return bytes ? out(model) : NRT_INVALID; }
NRT_STATUS nrt_load_collectives(const void *neff, size_t bytes, int32_t vnc, int32_t count, uint32_t rank, uint32_t ranks, nrt_model_t **model) { return out(model); }
NRT_STATUS nrt_unload(nrt_model_t *model) { return NRT_SUCCESS; }
NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *in, nrt_tensor_set_t *out) { return in ? run("model", 3000000) : NRT_EXEC_BAD_INPUT; }
NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *in, nrt_tensor_set_t *out, int n) { return run("model", 3000000ull * n); }
NRT_STATUS nrt_register_async_exec_callback(void (*callback)(void), void *params) { return NRT_SUCCESS; }
NRT_STATUS nrt_async_drain_queued_execs(int32_t vnc) { return NRT_SUCCESS; }
NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *in, nrt_tensor_set_t *set, int queue, nrta_error_tracker_t *e, nrta_seq_t *s) { return out(s); }
NRT_STATUS nrt_tensor_allocate(int placement, int32_t vnc, size_t bytes, const char *name, nrt_tensor_t **tensor) { return bytes >> 50 ? NRT_RESOURCE : out(tensor); }
void nrt_tensor_free(nrt_tensor_t **tensor) { *tensor = NULL; }
NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *source, size_t offset, size_t bytes, const char *name, nrt_tensor_t **tensor) { return out(tensor); }
NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor) { return out(tensor); }
NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t bytes) { return NRT_SUCCESS; }
NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buffer, size_t offset, size_t bytes) { return run("read", 1000000); }
NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buffer, size_t offset, size_t bytes) { return run("write", 1000000); }
NRT_STATUS nrt_tensor_read_batch(const void *batches, uint64_t n, bool unsafe) { return NRT_SUCCESS; }
NRT_STATUS nrt_tensor_write_batch(const void *batches, uint64_t n, bool unsafe) { return NRT_SUCCESS; }
NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *from, size_t a, nrt_tensor_t *to, size_t b, size_t bytes) { return run("copy", 1000000); }
NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t bytes) { return run("set", 1000000); }
NRT_STATUS nrt_memcpy_to_device(void *to, const void *from, size_t bytes) { return run("write", 1000000); }
NRT_STATUS nrta_tensor_read(void *buffer, nrt_tensor_t *tensor, uint64_t offset, uint64_t bytes, int queue, nrta_error_tracker_t *e, nrta_seq_t *s) { return out(s); }
NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buffer, uint64_t offset, uint64_t bytes, int queue, nrta_error_tracker_t *e, nrta_seq_t *s) { return out(s); }
NRT_STATUS nrta_tensor_copy(nrt_tensor_t *from, uint64_t a, nrt_tensor_t *to, uint64_t b, uint64_t bytes, int queue, nrta_error_tracker_t *e, nrta_seq_t *s) { return out(s); }
NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t rank, uint32_t ranks) { return NRT_SUCCESS; }
NRT_STATUS nrt_barrier(int32_t vnc, uint32_t rank, uint32_t ranks) { return NRT_SUCCESS; }
NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t rank, uint32_t ranks, uint32_t bytes, void *in, void *to) { return NRT_SUCCESS; }
NRT_STATUS nrta_cc_prepare(void *comm, void *in, void *to, int dtype, int op, int cc, void **context) { return out(context); }
NRT_STATUS nrta_cc_schedule(void **context, int queue, nrta_error_tracker_t *e, nrta_seq_t *s) { return out(s); }
NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t rank, uint32_t ranks) { return NRT_SUCCESS; }
NRT_STATUS nrta_is_completed(nrta_seq_t s, bool *done) { *done = true; return NRT_SUCCESS; }
NRT_STATUS nrta_get_sequence(uint32_t vnc, int unit, int queue, nrta_seq_t *s) { *s = 77; return NRT_SUCCESS; }
NRT_STATUS nrta_get_completion_handle(nrta_seq_t s, int *fd) { return s ? NRT_SUCCESS : NRT_INVALID; }
NRT_STATUS nrt_inspect_begin(void) { return NRT_SUCCESS; }
NRT_STATUS nrt_inspect_begin_with_options(void *options) { return NRT_SUCCESS; }
NRT_STATUS nrt_inspect_stop(void) { return NRT_SUCCESS; }
NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *file) { return NRT_SUCCESS; }
NRT_STATUS nrt_profile_stop(const char *file) { return NRT_SUCCESS; }
NRT_STATUS nrt_profile_continuous_start(void *options) { return NRT_SUCCESS; }
NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, void *options) { return NRT_SUCCESS; }
NRT_STATUS nrt_profile_continuous_stop(void) { return NRT_SUCCESS; }
NRT_STATUS nrt_sys_trace_start(void *options) { return NRT_SUCCESS; }
NRT_STATUS nrt_sys_trace_stop(void) { return NRT_SUCCESS; }
NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written, const void *options) { return NRT_SUCCESS; }
