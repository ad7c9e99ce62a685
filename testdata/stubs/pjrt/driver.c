/*
 * What JAX does with a plugin, on a stub: driver PLUGIN COUNT [WHEN,…]
 *
 * WHEN is where it waits for a line on standard input, after it has printed
 * "ready PID WHEN ADDRESS": start (the plugin is not loaded yet), loaded (loaded,
 * its table not asked for), made (ADDRESS is that of PJRT_LoadedExecutable_Execute),
 * running (executables are there). At the end it tells what it did.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "pjrt.h"

#define CALL(place, a) ((a)->struct_size = sizeof(*(a)), api->function[place](a))
#define PROGRAMS 3

static const struct api *api;
static const char *program_names[PROGRAMS] = { "jit_step", "jit_loss_and_grad", "pmap_all_reduce<f32>" };

static void wait_at(const char *when, const char *here)
{
	char line[16];

	if (!strstr(when, here))
		return;
	printf("ready %d %s %p\n", getpid(), here, api ? (void *)api->function[LOADED_EXECUTE] : NULL);
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(2);
}

static int code_of(void *error)
{
	struct error_args a = { .error = error };

	if (!error)
		return 0;
	CALL(ERROR_GET_CODE, &a);
	CALL(ERROR_DESTROY, &a);
	return a.code;
}

static void *compile(void *client, const char *name)
{
	struct program program = { .code = name, .code_size = strlen(name) };
	struct compile_args c = { .client = client, .program = &program };
	struct get_executable_args g = { 0 };
	struct name_args n = { 0 };
	struct executable_args d = { 0 };

	CALL(CLIENT_COMPILE, &c);
	g.loaded = c.executable;
	CALL(LOADED_GET_EXECUTABLE, &g);
	n.executable = d.executable = g.executable;
	CALL(EXECUTABLE_NAME, &n);
	return c.executable;
}

static void *send_array(void *client, int type, const int64_t *dims, size_t num_dims)
{
	struct from_host_args a = { .client = client, .data = dims, .type = type, .dims = dims, .num_dims = num_dims };
	struct event_args e = { 0 };

	CALL(BUFFER_FROM_HOST, &a);
	e.event = a.done;
	CALL(EVENT_AWAIT, &e);
	CALL(EVENT_DESTROY, &e);
	return a.buffer;
}

static int execute(void *loaded, int launch, size_t devices, size_t arguments)
{
	struct execute_options options = { .struct_size = sizeof(options), .launch_id = launch };
	void *events[8] = { 0 };
	struct execute_args a = {
		.executable = loaded, .options = &options, .num_devices = devices, .num_args = arguments,
		.device_complete_events = events,
	};
	int code = code_of(CALL(LOADED_EXECUTE, &a));

	for (int i = 0; i < 8; i++) {
		struct event_args e = { .event = events[i] };

		if (!events[i])
			continue;
		CALL(EVENT_AWAIT, &e);
		CALL(EVENT_DESTROY, &e);
	}
	return code;
}

static size_t receive(void *buffer)
{
	struct to_host_args a = { .src = buffer };
	struct event_args e = { 0 };

	CALL(BUFFER_TO_HOST, &a); /* how much? */
	a.dst = malloc(a.dst_size);
	CALL(BUFFER_TO_HOST, &a);
	e.event = a.event;
	CALL(EVENT_AWAIT, &e);
	CALL(EVENT_DESTROY, &e);
	free(a.dst);
	return a.dst_size;
}

int main(int argc, char **argv)
{
	const char *when = argc > 3 ? argv[3] : "never";
	int count = argc > 2 ? atoi(argv[2]) : 10, refused = 0;
	struct client_create_args c = { 0 };
	struct client_args d = { 0 };
	int64_t matrix[2] = { 6, 7 }, cube[3] = { 2, 3, 4 };
	size_t received = 0;
	void *library, *programs[PROGRAMS], *buffers[3];

	wait_at(when, "start");
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	wait_at(when, "loaded");
	api = ((const struct api *(*)(void))dlsym(library, "GetPjrtApi"))();
	wait_at(when, "made");
	CALL(CLIENT_CREATE, &c);
	for (int i = 0; i < PROGRAMS; i++)
		programs[i] = compile(c.client, program_names[i]);
	wait_at(when, "running");

	for (int i = 0; i < count; i++) {
		buffers[0] = send_array(c.client, 11, matrix, 2); /* f32: 168 bytes */
		buffers[1] = send_array(c.client, 13, cube, 3);   /* bf16: 48 bytes */
		buffers[2] = send_array(c.client, 5, NULL, 0);    /* s64, a scalar: 8 bytes */
		for (int p = 0; p < PROGRAMS; p++)
			for (int n = 0; n <= p; n++)
				refused += execute(programs[p], 100 * p + n, 1 << p, p + 2) != 0;
		refused += execute(programs[0], -1, 9, 2) == 8;
		received += receive(buffers[0]);
		for (int b = 0; b < 3; b++) {
			struct buffer_args a = { .buffer = buffers[b] };

			CALL(BUFFER_DESTROY, &a);
		}
	}
	for (int i = 0; i < PROGRAMS; i++) {
		struct executable_args a = { .executable = programs[i] };

		CALL(LOADED_DESTROY, &a);
	}
	d.client = c.client;
	CALL(CLIENT_DESTROY, &d);

	printf("{\"truth\": {\"pid\": %d, \"pjrt\": {\"executions\": {", getpid());
	for (int p = 0; p < PROGRAMS; p++)
		printf("%s\"%s\": {\"calls\": %d, \"devices\": %d, \"arguments\": %d, \"launch_ids\": %d}",
		       p ? ", " : "", program_names[p], count * (p + 1), 1 << p, p + 2, p + 1);
	printf("}, \"refused\": %d, \"sent\": {\"f32\": {\"calls\": %d, \"bytes\": %d}, \"bf16\": {\"calls\": %d, \"bytes\": %d}, "
	       "\"s64\": {\"calls\": %d, \"bytes\": %d}}, \"received\": {\"calls\": %d, \"bytes\": %zu}, "
	       "\"destroyed\": %d, \"compiled\": %d, \"awaited\": %d}}}\n",
	       refused, count, 168 * count, count, 48 * count, count, 8 * count, count, received,
	       3 * count, PROGRAMS, count * (3 + 1 + 1 + 2 * 2 + 4 * 3));
	return 0;
}
