/* What a program of stub calls expects to be recorded of them: a line for each
 * call, in order, and one for each change of memory, printed at the end.
 *
 *   call SYMBOL CATEGORY key=value …
 *   also key=value …              of the call said last
 *   memory ACTION SPACE BYTES ADDRESS DEVICE
 *
 * Keys are columns of span; a dash is NULL. */
#ifndef STUB_EXPECT_H
#define STUB_EXPECT_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *expected;
static size_t expected_size;
static FILE *expectations;

__attribute__((format(printf, 1, 2))) static inline void expect(const char *format, ...)
{
	va_list values;

	if (!expectations)
		expectations = open_memstream(&expected, &expected_size);
	va_start(values, format);
	vfprintf(expectations, format, values);
	fputc('\n', expectations);
	va_end(values);
}

/* How long work is that a query shall find unfinished. Two milliseconds are over before
 * the query on an emulated machine, where each of its probes is a perf event. */
#define LONG_US 300000

/* What a query was told, which is what shall be recorded of it. */
static inline void under_way(int told)
{
	if (told)
		return;
	fputs("the stub's device had ended its work when it was asked\n", stderr);
	exit(1);
}

/* Tells that all is set up, and waits for the tracer where it is asked to. */
static inline void ready(int wait)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (wait && getchar() == EOF)
		exit(1);
}

static inline void tell_expected(void)
{
	if (expectations) {
		fclose(expectations);
		fwrite(expected, 1, expected_size, stdout);
	}
	printf("end\n");
	fflush(stdout);
}

#endif
