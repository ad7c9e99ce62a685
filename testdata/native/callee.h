/* Functions of the shapes that probes meet: see callee.c. */
#ifndef CALLEE_H
#define CALLEE_H

#include <stddef.h>

struct message {
	const char *text;
	long numbers[4];
};

#ifdef __cplusplus
extern "C" {
#endif
long callee_plain(long a, long b);
long callee_protected(const char *text, long n);
long callee_branchy(long n);
long callee_loop_at_entry(long n);
long callee_recursive(long depth);
long callee_alloca(long n);
long callee_tail(long n);
long callee_indirect_tail(long (*target)(long), long n);
long callee_many(long a, long b, long c, long d, long e, long f, long g, long h);
long callee_message(const struct message *m, size_t size);
#ifdef __cplusplus
}
#endif
#endif
