/* Built four times: plain, with the stack protected, with endbr64, and both.
 * noipa: each call stays a call, with the arguments where the ABI puts them. */
#include "callee.h"

#include <alloca.h>
#include <string.h>

#define SHAPE __attribute__((noipa))

static volatile long sink;

SHAPE static void use(const void *p, size_t n)
{
	const char *c = p;

	sink += n ? c[n - 1] : 0;
}

SHAPE long callee_plain(long a, long b)
{
	return a * 3 + b;
}

/* The buffer makes -fstack-protector-strong end the function with its check. */
SHAPE long callee_protected(const char *text, long n)
{
	char copy[64];
	size_t length = strlen(text) % sizeof(copy);

	memcpy(copy, text, length);
	use(copy, length);
	return n + (long)length;
}

/* Several returns of different kinds. */
SHAPE long callee_branchy(long n)
{
	char room[32] = {0};

	if (n % 3 == 0)
		return -1;
	room[n & 31] = (char)n;
	use(room, sizeof(room));
	if (n % 3 == 1)
		return room[0] + 1;
	use(room, 1);
	return n;
}

/* A loop whose head may be the function's first instruction. */
SHAPE long callee_loop_at_entry(long n)
{
	do {
		n -= 7;
	} while (n > 0);
	return n;
}

SHAPE long callee_recursive(long depth)
{
	char room[16] = {(char)depth};

	use(room, sizeof(room));
	return depth == 0 ? 0 : 1 + callee_recursive(depth - 1);
}

SHAPE long callee_alloca(long n)
{
	char *room = alloca((size_t)n);

	memset(room, 1, (size_t)n);
	use(room, (size_t)n);
	return n;
}

SHAPE long callee_tail(long n)
{
	return callee_plain(n, 1);
}

SHAPE long callee_indirect_tail(long (*target)(long), long n)
{
	return target(n + 1);
}

/* g and h are on the stack. */
SHAPE long callee_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

SHAPE long callee_message(const struct message *m, size_t size)
{
	return (long)size + m->numbers[3] + (long)strlen(m->text);
}
