/* The part of AWS Neuron's headers that the stub has: signatures
 * as in aws-neuron-sdk, handles opaque. */
#ifndef STUB_NRT_H
#define STUB_NRT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int NRT_STATUS;
enum { NRT_SUCCESS = 0, NRT_FAILURE = 1, NRT_INVALID = 2, NRT_RESOURCE = 4, NRT_EXEC_BAD_INPUT = 1002 };
typedef struct nrt_model nrt_model_t;
typedef struct nrt_tensor nrt_tensor_t;
typedef void nrt_tensor_set_t;
typedef void nrta_error_tracker_t;
typedef uint64_t nrta_seq_t;

NRT_STATUS nrt_init(int framework, const char *fw, const char *fal);
void nrt_close(void);
NRT_STATUS nrt_load(const void *neff, size_t bytes, int32_t vnc, int32_t count, nrt_model_t **model);
NRT_STATUS nrt_load_collectives(const void *neff, size_t bytes, int32_t vnc, int32_t count, uint32_t rank, uint32_t ranks, nrt_model_t **model);
NRT_STATUS nrt_unload(nrt_model_t *model);
NRT_STATUS nrt_execute(nrt_model_t *model, const nrt_tensor_set_t *in, nrt_tensor_set_t *out);
NRT_STATUS nrt_execute_repeat(nrt_model_t *model, const nrt_tensor_set_t *in, nrt_tensor_set_t *out, int n);
NRT_STATUS nrt_register_async_exec_callback(void (*callback)(void), void *params);
NRT_STATUS nrt_async_drain_queued_execs(int32_t vnc);
NRT_STATUS nrta_execute_schedule(nrt_model_t *model, const nrt_tensor_set_t *in, nrt_tensor_set_t *out, int queue, nrta_error_tracker_t *e, nrta_seq_t *s);
NRT_STATUS nrt_tensor_allocate(int placement, int32_t vnc, size_t bytes, const char *name, nrt_tensor_t **tensor);
void nrt_tensor_free(nrt_tensor_t **tensor);
NRT_STATUS nrt_tensor_allocate_slice(const nrt_tensor_t *source, size_t offset, size_t bytes, const char *name, nrt_tensor_t **tensor);
NRT_STATUS nrt_tensor_allocate_empty(const char *name, nrt_tensor_t **tensor);
NRT_STATUS nrt_tensor_attach_buffer(nrt_tensor_t *tensor, void *buffer, size_t bytes);
NRT_STATUS nrt_tensor_read(const nrt_tensor_t *tensor, void *buffer, size_t offset, size_t bytes);
NRT_STATUS nrt_tensor_write(nrt_tensor_t *tensor, const void *buffer, size_t offset, size_t bytes);
NRT_STATUS nrt_tensor_read_batch(const void *batches, uint64_t n, bool unsafe);
NRT_STATUS nrt_tensor_write_batch(const void *batches, uint64_t n, bool unsafe);
NRT_STATUS nrt_tensor_copy(const nrt_tensor_t *from, size_t a, nrt_tensor_t *to, size_t b, size_t bytes);
NRT_STATUS nrt_tensor_memset(nrt_tensor_t *tensor, uint64_t offset, int value, size_t bytes);
NRT_STATUS nrt_memcpy_to_device(void *to, const void *from, size_t bytes);
NRT_STATUS nrta_tensor_read(void *buffer, nrt_tensor_t *tensor, uint64_t offset, uint64_t bytes, int queue, nrta_error_tracker_t *e, nrta_seq_t *s);
NRT_STATUS nrta_tensor_write(nrt_tensor_t *tensor, const void *buffer, uint64_t offset, uint64_t bytes, int queue, nrta_error_tracker_t *e, nrta_seq_t *s);
NRT_STATUS nrta_tensor_copy(nrt_tensor_t *from, uint64_t a, nrt_tensor_t *to, uint64_t b, uint64_t bytes, int queue, nrta_error_tracker_t *e, nrta_seq_t *s);
NRT_STATUS nrt_build_global_comm(int32_t vnc, uint32_t rank, uint32_t ranks);
NRT_STATUS nrt_barrier(int32_t vnc, uint32_t rank, uint32_t ranks);
NRT_STATUS nrt_all_gather(int32_t vnc, uint32_t rank, uint32_t ranks, uint32_t bytes, void *in, void *out);
NRT_STATUS nrta_cc_prepare(void *comm, void *in, void *out, int dtype, int op, int cc, void **context);
NRT_STATUS nrta_cc_schedule(void **context, int queue, nrta_error_tracker_t *e, nrta_seq_t *s);
NRT_STATUS nrt_cc_global_comm_init(uint32_t vnc, uint32_t rank, uint32_t ranks);
NRT_STATUS nrta_is_completed(nrta_seq_t s, bool *done);
NRT_STATUS nrta_get_sequence(uint32_t vnc, int unit, int queue, nrta_seq_t *s);
NRT_STATUS nrta_get_completion_handle(nrta_seq_t s, int *fd);

/* nrt_profile.h, nrt_sys_trace.h */
NRT_STATUS nrt_inspect_begin(void);
NRT_STATUS nrt_inspect_begin_with_options(void *options);
NRT_STATUS nrt_inspect_stop(void);
NRT_STATUS nrt_profile_start(nrt_model_t *model, const char *file);
NRT_STATUS nrt_profile_stop(const char *file);
NRT_STATUS nrt_profile_continuous_start(void *options);
NRT_STATUS nrt_profile_continuous_save(uint32_t vnc, void *options);
NRT_STATUS nrt_profile_continuous_stop(void);
NRT_STATUS nrt_sys_trace_start(void *options);
NRT_STATUS nrt_sys_trace_stop(void);
NRT_STATUS nrt_sys_trace_fetch_events(char **buffer, size_t *written, const void *options);

#endif
