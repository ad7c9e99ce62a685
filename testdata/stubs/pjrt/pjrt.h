/*
 * The part of PJRT's C interface that the stub plugin and its driver speak, in
 * our own words. The places of functions and members are those of version 0.114.
 */
#ifndef STUB_PJRT_H
#define STUB_PJRT_H

#include <stddef.h>
#include <stdint.h>

/* Places in the table of the functions that the stub has. */
enum {
	ERROR_DESTROY = 0, ERROR_MESSAGE = 1, ERROR_GET_CODE = 2, PLUGIN_INITIALIZE = 3,
	EVENT_DESTROY = 5, EVENT_IS_READY = 6, EVENT_AWAIT = 8,
	CLIENT_CREATE = 10, CLIENT_DESTROY = 11, CLIENT_COMPILE = 20, BUFFER_FROM_HOST = 22,
	EXECUTABLE_DESTROY = 40, EXECUTABLE_NAME = 41,
	LOADED_DESTROY = 50, LOADED_GET_EXECUTABLE = 51, LOADED_EXECUTE = 55,
	BUFFER_DESTROY = 58, BUFFER_TO_HOST = 70,
	FUNCTIONS = 138,
};

typedef void *call(void *args);

struct version {
	size_t struct_size;
	void *extension_start;
	int major, minor;
};

struct api {
	size_t struct_size;
	void *extension_start;
	struct version version;
	call *function[FUNCTIONS];
};

#define HEAD size_t struct_size; void *extension_start

struct error_args { HEAD; void *error; int code; };
struct event_args { HEAD; void *event; };
struct client_create_args {
	HEAD;
	void *create_options; size_t num_options;
	void *kv_get, *kv_get_user, *kv_put, *kv_put_user;
	void *client;
};
struct client_args { HEAD; void *client; };
struct program { HEAD; const char *code; size_t code_size; const char *format; size_t format_size; };
struct compile_args {
	HEAD;
	void *client; const struct program *program;
	const char *options; size_t options_size;
	void *executable;
};
struct executable_args { HEAD; void *executable; };
struct name_args { HEAD; void *executable; const char *name; size_t name_size; };
struct get_executable_args { HEAD; void *loaded; void *executable; };
struct execute_options {
	HEAD;
	void *send_callbacks, *recv_callbacks;
	size_t num_send_ops, num_recv_ops;
	int launch_id;
};
struct execute_args {
	HEAD;
	void *executable;
	const struct execute_options *options;
	void ***argument_lists;
	size_t num_devices, num_args;
	void ***output_lists;
	void **device_complete_events;
	void *execute_device;
};
struct from_host_args {
	HEAD;
	void *client; const void *data; int type;
	const int64_t *dims; size_t num_dims;
	const int64_t *byte_strides; size_t num_byte_strides;
	int semantics;
	void *device, *memory, *layout, *done, *buffer;
};
struct buffer_args { HEAD; void *buffer; };
struct to_host_args { HEAD; void *src; void *host_layout; void *dst; size_t dst_size; void *event; };

const struct api *GetPjrtApi(void);

#endif
