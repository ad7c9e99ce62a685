/*
 * A PJRT plugin without a device: what it is asked to run, it takes as run. It
 * makes its table when it is first asked for it, behind a call, as XLA's plugins
 * do; with -DSTATIC the table is there from the start.
 *
 * -DMINOR and -DEXTRA make it another version, with functions of its own behind
 * those that are known; -DOLD a shorter one; -DMAJOR one whose layout nobody
 * knows yet.
 */
#include <stdlib.h>
#include <string.h>
#include "pjrt.h"

#ifndef MAJOR
#define MAJOR 0
#endif
#ifndef MINOR
#define MINOR 114
#endif
#ifndef EXTRA
#define EXTRA 0
#endif

#ifdef OLD /* the table as it was before PJRT_Buffer_CopyRawToHost: shorter */
#define SIZE (offsetof(struct api, function) + 100 * sizeof(call *))
#else
#define SIZE (sizeof(struct api) + EXTRA * sizeof(call *))
#endif

struct error { int code; };
struct executable { int references; char name[64]; };
struct loaded { struct executable *executable; };
struct buffer { size_t bytes; };

/* Enough of a frame that the compiler protects it: that is where the end of a
 * function is seen. */
#define FRAME volatile char frame[32]; frame[0] = 0

static void *fail(int code)
{
	struct error *e = malloc(sizeof(*e));

	e->code = code;
	return e;
}

static void *error_destroy(void *p)
{
	FRAME;
	free(((struct error_args *)p)->error);
	return (void *)(uintptr_t)frame[0];
}

static void *error_message(void *p)
{
	(void)p;
	return NULL;
}

static void *error_get_code(void *p)
{
	struct error_args *a = p;
	FRAME;

	a->code = ((struct error *)a->error)->code;
	return (void *)(uintptr_t)frame[0];
}

static void *plugin_initialize(void *p)
{
	FRAME;
	(void)p;
	return (void *)(uintptr_t)frame[0];
}

static void *event_destroy(void *p)
{
	FRAME;
	free(((struct event_args *)p)->event);
	return (void *)(uintptr_t)frame[0];
}

static void *event_await(void *p)
{
	FRAME;
	return ((struct event_args *)p)->event ? (void *)(uintptr_t)frame[0] : fail(3);
}

static void *client_create(void *p)
{
	struct client_create_args *a = p;
	FRAME;

	a->client = malloc(16);
	return (void *)(uintptr_t)frame[0];
}

static void *client_destroy(void *p)
{
	FRAME;
	free(((struct client_args *)p)->client);
	return (void *)(uintptr_t)frame[0];
}

/* The program's code is its name. */
static void *client_compile(void *p)
{
	struct compile_args *a = p;
	struct loaded *l = malloc(sizeof(*l));
	size_t n = a->program->code_size;
	FRAME;

	l->executable = calloc(1, sizeof(*l->executable));
	l->executable->references = 1;
	memcpy(l->executable->name, a->program->code, n < 63 ? n : 63);
	a->executable = l;
	return (void *)(uintptr_t)frame[0];
}

static void *executable_name(void *p)
{
	struct name_args *a = p;
	FRAME;

	a->name = ((struct executable *)a->executable)->name;
	a->name_size = strlen(a->name);
	return (void *)(uintptr_t)frame[0];
}

static void *executable_destroy(void *p)
{
	struct executable *e = ((struct executable_args *)p)->executable;
	FRAME;

	if (--e->references == 0)
		free(e);
	return (void *)(uintptr_t)frame[0];
}

static void *loaded_get_executable(void *p)
{
	struct get_executable_args *a = p;
	FRAME;

	a->executable = ((struct loaded *)a->loaded)->executable;
	((struct executable *)a->executable)->references++;
	return (void *)(uintptr_t)frame[0];
}

static void *loaded_destroy(void *p)
{
	struct loaded *l = ((struct executable_args *)p)->executable;
	FRAME;

	if (--l->executable->references == 0)
		free(l->executable);
	free(l);
	return (void *)(uintptr_t)frame[0];
}

/* Refuses more than eight devices: RESOURCE_EXHAUSTED. */
static void *loaded_execute(void *p)
{
	struct execute_args *a = p;
	FRAME;

	if (a->num_devices > 8)
		return fail(8);
	for (size_t i = 0; a->device_complete_events && i < a->num_devices; i++)
		a->device_complete_events[i] = malloc(8);
	return (void *)(uintptr_t)frame[0];
}

static void *buffer_from_host(void *p)
{
	struct from_host_args *a = p;
	struct buffer *b = malloc(sizeof(*b));
	FRAME;

	b->bytes = 4;
	for (size_t i = 0; i < a->num_dims; i++)
		b->bytes *= a->dims[i];
	a->buffer = b;
	a->done = malloc(8);
	return (void *)(uintptr_t)frame[0];
}

static void *buffer_to_host(void *p)
{
	struct to_host_args *a = p;
	FRAME;

	if (!a->dst) {
		a->dst_size = ((struct buffer *)a->src)->bytes;
		return (void *)(uintptr_t)frame[0];
	}
	memset(a->dst, 0, a->dst_size);
	a->event = malloc(8);
	return (void *)(uintptr_t)frame[0];
}

static void *buffer_destroy(void *p)
{
	FRAME;
	free(((struct buffer_args *)p)->buffer);
	return (void *)(uintptr_t)frame[0];
}

/* What the stub does not do: one function for all of it, as plugins have it. */
static void *unimplemented(void *p)
{
	FRAME;
	(void)p;
	frame[1] = 12;
	return fail(frame[1]);
}

struct table {
	struct api api;
	call *extra[EXTRA + 1];
};

#define ENTRIES \
	.api = { \
		.struct_size = SIZE, \
		.version = { sizeof(struct version), NULL, MAJOR, MINOR }, \
		.function = { \
			[ERROR_DESTROY] = error_destroy, [ERROR_MESSAGE] = error_message, \
			[ERROR_GET_CODE] = error_get_code, [PLUGIN_INITIALIZE] = plugin_initialize, \
			[EVENT_DESTROY] = event_destroy, [EVENT_AWAIT] = event_await, \
			[CLIENT_CREATE] = client_create, [CLIENT_DESTROY] = client_destroy, \
			[CLIENT_COMPILE] = client_compile, [BUFFER_FROM_HOST] = buffer_from_host, \
			[EXECUTABLE_DESTROY] = executable_destroy, [EXECUTABLE_NAME] = executable_name, \
			[LOADED_DESTROY] = loaded_destroy, [LOADED_GET_EXECUTABLE] = loaded_get_executable, \
			[LOADED_EXECUTE] = loaded_execute, \
			[BUFFER_DESTROY] = buffer_destroy, [BUFFER_TO_HOST] = buffer_to_host, \
			[71] = unimplemented, [72] = unimplemented, [73] = unimplemented, \
		}, \
	}

#ifdef STATIC
static const struct table table = { ENTRIES };

const struct api *GetPjrtApi(void) { return &table.api; }
#else
static struct table table;
static int made;

static void __attribute__((noinline)) make(struct table *t)
{
	*t = (struct table){ ENTRIES };
	for (int i = 0; i < EXTRA; i++)
		t->extra[i] = plugin_initialize;
}

static const struct api * __attribute__((noinline)) get(void)
{
	if (!__atomic_load_n(&made, __ATOMIC_ACQUIRE)) {
		make(&table);
		__atomic_store_n(&made, 1, __ATOMIC_RELEASE);
	}
	return &table.api;
}

const struct api *GetPjrtApi(void) { return get(); }
#endif
