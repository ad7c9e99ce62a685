/*
 * A library and a program with what a user may ask to be probed: a function with arguments and a
 * result, a C++ name, and a USDT probe that is called only while its count is raised.
 */
#include <stdio.h>

#ifdef LIBRARY
/* What sys/sdt.h makes of a USDT probe: an instruction that does nothing, and a note about it. */
#define NOTE(provider, name, semaphore, arguments) \
 "990: nop\n" \
 ".pushsection .note.stapsdt,\"\",\"note\"\n" \
 ".balign 4\n.4byte 992f-991f, 994f-993f, 3\n" \
 "991: .asciz \"stapsdt\"\n992: .balign 4\n" \
 "993: .8byte 990b\n.8byte _.stapsdt.base\n.8byte " semaphore "\n" \
 ".asciz \"" provider "\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n" \
 "994: .balign 4\n.popsection\n" \
 ".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
 ".weak _.stapsdt.base\n.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n.popsection\n.endif\n"
#ifdef __aarch64__
#define OPERANDS "-4@%[n] 8@%[text] 8@7 8@[%[where]]"
#else
#define OPERANDS "-4@%k[n] 8@%[text] 8@$7 8@(%[where])"
#endif

unsigned short work_watched __attribute__((section(".probes")));
int work_calls, work_seen;
long work_number = 4242;

__attribute__((noinline)) int work_step(int n, const char *text, unsigned long size, const long *at)
{
	(void)size; /* has no operand: the test reads it by its register */
	work_calls++;
	for (volatile int i = 0; i < 100; i++)
		;
	if (work_watched) {
		work_seen++;
		__asm__ volatile (NOTE("work", "step", "work_watched", OPERANDS) : : [n] "r"(n), [text] "r"(text), [where] "r"(at));
	}
	return n < 0 ? -n : n * 2;
}

/* work::Pool::run(int) */
__attribute__((noinline)) void _ZN4work4Pool3runEi(void *pool, int n)
{
	for (volatile int i = 0; i < n; i++)
		;
	(void)pool;
}
#else
extern int work_step(int n, const char *text, unsigned long size, const long *at);
extern void _ZN4work4Pool3runEi(void *pool, int n);
extern int work_calls, work_seen;
extern long work_number;

/* Makes its calls for each line that it reads, and says how often the USDT probe was called. */
int main(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		for (int i = 0; i < 100; i++)
			work_step(i % 2 ? -i : i, i % 3 ? "odd \"name\"" : 0, 1UL << 40, &work_number);
		_ZN4work4Pool3runEi(&line, 7);
		printf("%d calls, %d seen\n", work_calls, work_seen);
		fflush(stdout);
	}
	return 0;
}
#endif
