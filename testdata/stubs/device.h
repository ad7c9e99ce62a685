/* A stub device: streams that really run beside the host, each a thread that
 * sleeps as long as its work is said to take, and events, graphs and memory that
 * behave like a runtime's. Nothing is computed. With STUB_LOG naming a file, it
 * holds the truth that the tests compare with: a line for each piece of work,
 *
 *   work NAME TID CALLED_NS BEGAN_NS ENDED_NS
 *
 * (CLOCK_MONOTONIC; CALLED is inside the call that gave it), and for each
 * elapsed time that was told: "elapsed TID CALLED_NS NS 0 0". */
#ifndef STUB_DEVICE_H
#define STUB_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;
struct event;
struct graph;

/* Work: a name that points to memory that stays, and how long it takes. */
struct work {
	const char *name;
	uint64_t ns;
};

uint64_t now_ns(void);
struct stream *stream_new(void);
/* The stream that a handle means: 0, 1 and 2 are default streams. */
struct stream *stream_of(void *handle);
void stream_free(struct stream *s);
void stream_give(struct stream *s, struct work work);
void stream_wait(struct stream *s);
bool stream_idle(struct stream *s);
void device_wait(void); /* for every stream */

struct event *event_new(void);
void event_record(struct event *e, struct stream *s);
void event_wait(struct event *e);
bool event_passed(struct event *e);
double event_elapsed_ms(struct event *from, struct event *to);

void stream_capture(struct stream *s);
void stream_capture_into(struct stream *s, struct graph *g);
bool stream_capturing(struct stream *s);
void stream_break_capture(struct stream *s); /* it comes to nothing: its end is NULL */
struct graph *stream_end_capture(struct stream *s);
void stream_join(struct stream *s, struct event *e); /* waits for the event, in a capture too */
struct graph *graph_new(void);
void graph_add(struct graph *g, struct work work);
/* The body of a conditional node, which may get more later: it runs so many times. */
void graph_add_body(struct graph *g, struct graph *body, unsigned times);
void graph_include(struct graph *g, struct graph *child); /* what it has now */
struct graph *graph_copy(struct graph *g);
void graph_give(struct graph *g, struct stream *s);

/* What a stub of a profiler is told of (cupti.c), which puts a pointer to its functions into stub_watch: a call that gave
 * the device something, named by the number that began returned, and each piece of work that came of it, on a thread that
 * plays the device; node is which one of a graph's, from 1. */
struct stub_watch {
	uint32_t (*began)(void);
	void (*returned)(uint32_t number, const char *what, uint64_t from, uint64_t to, int tid);
	void (*worked)(uint32_t number, const struct work *work, unsigned node, const void *stream, uint64_t from, uint64_t to);
};
extern struct stub_watch *stub_watch;

/* A made-up handle or address, never the same twice. */
uint64_t fresh(void);

#endif
