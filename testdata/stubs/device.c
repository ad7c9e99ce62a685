#define _GNU_SOURCE
#include "device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct item {
	struct item *next;
	struct work work;
	struct event *event; /* instead of work */
	struct event *after; /* or: go on when this has passed */
	uint64_t record;     /* which record of the event */
	struct graph *graph; /* or: all of this */
	uint64_t called;
	uint32_t number; /* for who watches */
	const struct stream *stream;
	int tid;
};

struct stream {
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct item *first, **last;
	uint64_t submitted, done;
	struct graph *capture;
	struct stream *next;
	bool gone, broken;
};

/* An event may be recorded again, on another stream, before it has passed: each
 * record is one of its own, of which so many are remembered. */
#define RECORDS 256

struct event {
	pthread_mutex_t lock;
	pthread_cond_t change;
	uint64_t wanted;			/* the latest record, by number */
	uint64_t passed[RECORDS], at[RECORDS];	/* by number of the record: that number, and when */
	struct graph *capture;
};

struct node {
	struct work work;
	struct graph *body; /* instead of work */
	unsigned times;
};

struct graph {
	struct node *nodes;
	size_t count;
};

__attribute__((visibility("default"))) struct stub_watch *stub_watch;

static pthread_mutex_t devices = PTHREAD_MUTEX_INITIALIZER;
static struct stream *streams, *defaults[3];

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void tell(const char *kind, const char *name, int tid, uint64_t called, uint64_t began, uint64_t ended)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static FILE *log;
	const char *path = getenv("STUB_LOG");

	if (!path)
		return;
	pthread_mutex_lock(&lock);
	if (!log && (log = fopen(path, "a")))
		setvbuf(log, NULL, _IOLBF, 0);
	if (log)
		fprintf(log, "%s\t%s\t%d\t%lu\t%lu\t%lu\n", kind, name, tid, called, began, ended);
	pthread_mutex_unlock(&lock);
}

static void run(const struct work *w, const struct item *i, unsigned node)
{
	uint64_t began = now_ns(), end = began + w->ns;
	struct timespec until = { end / 1000000000, end % 1000000000 };

	while (w->ns && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
	end = now_ns();
	tell("work", w->name, i->tid, i->called, began, end);
	if (i->number)
		stub_watch->worked(i->number, w, node, i->stream, began, end);
}

static void run_graph(const struct graph *g, const struct item *i)
{
	for (size_t n = 0; n < g->count; n++)
		if (g->nodes[n].body)
			for (unsigned times = g->nodes[n].times; times; times--)
				run_graph(g->nodes[n].body, i);
		else
			run(&g->nodes[n].work, i, n + 1);
}

static void pass(struct event *e, uint64_t record)
{
	pthread_mutex_lock(&e->lock);
	e->passed[record % RECORDS] = record;
	e->at[record % RECORDS] = now_ns();
	pthread_cond_broadcast(&e->change);
	pthread_mutex_unlock(&e->lock);
}

static void event_reach(struct event *e, uint64_t record)
{
	pthread_mutex_lock(&e->lock);
	while (record && e->passed[record % RECORDS] < record)
		pthread_cond_wait(&e->change, &e->lock);
	pthread_mutex_unlock(&e->lock);
}

/* A host thread plays the device, and may have to wait for a processor. A device would
 * have begun at once, and have been through, for whoever waits for it, when they were let
 * go on: that long it took at the most. */
struct longest {
	const char *name;
	uint64_t called, from;
	int tid;
};

static void tell_longest(const struct longest *l)
{
	if (l->name)
		tell("longest", l->name, l->tid, l->called, l->from, now_ns());
}

static void *worker(void *argument)
{
	struct stream *s = argument;
	struct longest last = {};
	uint64_t idle_since = 0;

	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct item *i = s->first;

		if (!i && s->gone)
			break;
		if (!i) {
			pthread_cond_wait(&s->change, &s->lock);
			continue;
		}
		pthread_mutex_unlock(&s->lock);
		if (!i->event && !i->after)
			last = (struct longest){ i->graph ? "graph" : i->work.name, i->called,
						 i->called > idle_since ? i->called : idle_since, i->tid };
		if (i->event)
			pass(i->event, i->record);
		else if (i->after)
			event_reach(i->after, i->record);
		else if (i->graph)
			run_graph(i->graph, i);
		else
			run(&i->work, i, 0);
		idle_since = now_ns();
		pthread_mutex_lock(&s->lock);
		s->first = i->next;
		if (!s->first)
			s->last = &s->first;
		s->done++;
		free(i);
		pthread_cond_broadcast(&s->change);
		pthread_mutex_unlock(&s->lock);
		tell_longest(&last);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

struct stream *stream_new(void)
{
	struct stream *s = calloc(1, sizeof(*s));
	pthread_t thread;

	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->change, NULL);
	s->last = &s->first;
	pthread_create(&thread, NULL, worker, s);
	pthread_detach(thread);
	pthread_mutex_lock(&devices);
	s->next = streams;
	streams = s;
	pthread_mutex_unlock(&devices);
	return s;
}

struct stream *stream_of(void *handle)
{
	uintptr_t n = (uintptr_t)handle;

	if (n > 2)
		return handle;
	if (!defaults[n])
		defaults[n] = stream_new();
	return defaults[n];
}

void stream_free(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	s->gone = true;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
}

static void give(struct stream *s, struct item item)
{
	struct item *i = malloc(sizeof(*i));

	*i = item;
	i->next = NULL;
	i->called = now_ns();
	i->tid = item.tid = syscall(SYS_gettid);
	i->stream = s;
	item.called = i->called;
	if (stub_watch && !item.event && !item.after)
		i->number = item.number = stub_watch->began();
	pthread_mutex_lock(&s->lock);
	*s->last = i;
	s->last = &i->next;
	s->submitted++;
	pthread_cond_broadcast(&s->change);
	pthread_mutex_unlock(&s->lock);
	/* The item is gone by now, maybe. */
	if (item.number)
		stub_watch->returned(item.number, item.graph ? "graph" : item.work.name, item.called, now_ns(), item.tid);
}

void stream_give(struct stream *s, struct work work)
{
	if (s->capture)
		graph_add(s->capture, work);
	else
		give(s, (struct item){ .work = work });
}

void stream_wait(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	for (uint64_t until = s->submitted; s->done < until;)
		pthread_cond_wait(&s->change, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

bool stream_idle(struct stream *s)
{
	pthread_mutex_lock(&s->lock);
	bool idle = s->done == s->submitted;
	pthread_mutex_unlock(&s->lock);
	return idle;
}

void device_wait(void)
{
	pthread_mutex_lock(&devices);
	struct stream *s = streams;
	pthread_mutex_unlock(&devices);
	for (; s; s = s->next)
		stream_wait(s);
}

struct event *event_new(void)
{
	struct event *e = calloc(1, sizeof(*e));

	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->change, NULL);
	return e;
}

void event_record(struct event *e, struct stream *s)
{
	e->capture = s->capture;
	if (s->capture)
		return;
	pthread_mutex_lock(&e->lock);
	uint64_t record = ++e->wanted;
	pthread_mutex_unlock(&e->lock);
	give(s, (struct item){ .event = e, .record = record });
}

static uint64_t event_wanted(struct event *e)
{
	pthread_mutex_lock(&e->lock);
	uint64_t wanted = e->wanted;
	pthread_mutex_unlock(&e->lock);
	return wanted;
}

void event_wait(struct event *e) { event_reach(e, event_wanted(e)); }

bool event_passed(struct event *e)
{
	pthread_mutex_lock(&e->lock);
	bool passed = e->passed[e->wanted % RECORDS] == e->wanted;
	pthread_mutex_unlock(&e->lock);
	return passed;
}

double event_elapsed_ms(struct event *from, struct event *to)
{
	uint64_t ns = to->at[to->wanted % RECORDS] - from->at[from->wanted % RECORDS];

	tell("elapsed", "-", syscall(SYS_gettid), now_ns(), ns, 0);
	return ns / 1e6;
}

void stream_capture(struct stream *s) { s->capture = graph_new(); }
void stream_capture_into(struct stream *s, struct graph *g) { s->capture = g; }
bool stream_capturing(struct stream *s) { return s->capture != NULL; }
void stream_break_capture(struct stream *s) { s->broken = true; }

struct graph *stream_end_capture(struct stream *s)
{
	struct graph *g = s->capture;

	for (struct stream *other = streams; other; other = other->next)
		if (other->capture == g)
			other->capture = NULL;
	if (s->broken) {
		s->broken = false;
		return NULL;
	}
	return g;
}

void stream_join(struct stream *s, struct event *e)
{
	if (e->capture)
		s->capture = e->capture;
	else
		give(s, (struct item){ .after = e, .record = event_wanted(e) }); /* a later record is none of its */
}

struct graph *graph_new(void) { return calloc(1, sizeof(struct graph)); }

static void append(struct graph *g, struct node node)
{
	g->nodes = realloc(g->nodes, (g->count + 1) * sizeof(node));
	g->nodes[g->count++] = node;
}

void graph_add(struct graph *g, struct work work) { append(g, (struct node){ .work = work }); }

void graph_add_body(struct graph *g, struct graph *body, unsigned times)
{
	append(g, (struct node){ .body = body, .times = times });
}

void graph_include(struct graph *g, struct graph *child)
{
	for (size_t i = 0, n = child->count; i < n; i++)
		append(g, child->nodes[i]);
}

struct graph *graph_copy(struct graph *g)
{
	struct graph *copy = graph_new();

	graph_include(copy, g);
	return copy;
}

void graph_give(struct graph *g, struct stream *s)
{
	if (s->capture)
		graph_include(s->capture, g);
	else
		give(s, (struct item){ .graph = g });
}

uint64_t fresh(void)
{
	static uint64_t last = 0x7f0000000000;

	return __atomic_add_fetch(&last, 0x10000, __ATOMIC_RELAXED);
}
