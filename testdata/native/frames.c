/*
 * Call chains of every shape that an unwinder meets, built without frame
 * pointers. Each ends in frames_leaf, where a probe takes the stack; the test
 * knows who must be on it. `frames N` runs every chain N times; with `wait late`
 * the one through code that was generated after the wait.
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "frames.h"

#define SHAPE __attribute__((noinline, noclone))

/* Keeps calls from becoming jumps, and their results used. */
static volatile long sink;

SHAPE void frames_leaf(long chain)
{
	sink += chain;
}

SHAPE long plain_inner(long chain)
{
	frames_leaf(chain);
	return sink + 1;
}

SHAPE long plain_outer(long chain)
{
	return plain_inner(chain) + 2;
}

SHAPE long big_frame(long chain)
{
	volatile char room[200000];

	room[chain] = 1;
	return plain_inner(chain) + room[chain];
}

SHAPE long dynamic_frame(long chain)
{
	volatile char *room = alloca(chain * 16 + 40);

	room[3] = 1;
	return plain_inner(chain) + room[3];
}

/* gcc reaches the frame of such a function through r10 (DRAP), then *(rbp - n). */
SHAPE long realigned(long chain)
{
	volatile long room[8] __attribute__((aligned(64)));
	volatile char *more = alloca(chain * 16 + 40);

	room[1] = (long)room & 63;
	more[1] = 0;
	return plain_inner(chain) + room[1] + more[1];
}

static void on_signal(int number)
{
	frames_leaf(number == SIGUSR1 ? CHAIN_SIGNAL : CHAIN_SIGNAL_STACK);
	sink++;
}

SHAPE long signalled(int number)
{
	raise(number);
	return sink + 1;
}

static jmp_buf back;

/* The call is the function's last instruction: its return address is beyond it. */
SHAPE __attribute__((noreturn)) static void leave_for_good(long chain)
{
	frames_leaf(chain);
	longjmp(back, 1);
}

SHAPE __attribute__((noreturn)) void ends_in_a_call(long chain)
{
	sink++;
	leave_for_good(chain);
}

SHAPE long jumped_over(long chain)
{
	if (setjmp(back) == 0)
		ends_in_a_call(chain);
	return sink;
}

/* Through a library and back: two linkage tables on the way. */
SHAPE static void called_back(long chain)
{
	plain_inner(chain);
	sink++;
}

SHAPE long through_library(long chain)
{
	return frames_call(called_back, chain) + 1;
}

/* A return probe is pending on both; the first jumps into the second. */
SHAPE long probed_target(long chain)
{
	return plain_inner(chain) + 1;
}

SHAPE long probed_jump(long chain)
{
	sink++;
	return probed_target(chain);
}

SHAPE long above_probed(long chain)
{
	return probed_jump(chain) + 1;
}

/* Its return address was replaced by a probe and it never returned: the next
 * walk must pass its remains by. */
SHAPE long probed_jumped_over(long chain)
{
	if (setjmp(back) == 0)
		ends_in_a_call(CHAIN_ENDS_IN_CALL);
	return probed_target(chain) + 1;
}

SHAPE long recursive(long depth)
{
	if (depth == 0)
		return plain_inner(CHAIN_RECURSIVE);
	depth = recursive(depth - 1);
	sink += depth; /* after the call, or gcc makes a loop of it */
	return depth;
}

static void *in_thread(void *chain)
{
	plain_outer((long)chain);
	return 0;
}

/*
 * Code that no file describes. Of x86-64:
 *
 *	0x00	with a frame pointer, which goes back by a jump, so that nobody can
 *		tell from its instructions where it ends:
 *		push rbp; mov rbp, rsp; call rsi; pop rbp; pop rcx; jmp rcx
 *	0x40	as oneDNN's kernels, without one, and rbp used for other things:
 *		push rbp; push rbx; mov ebp, 0x1234; sub rsp, 40; call rsi;
 *		add rsp, 40; pop rbx; pop rbp; ret
 *
 * Of arm64: with a frame pointer, both times.
 */
typedef long (*generated_function)(long, long (*)(long));
static generated_function framed, frameless, late;

static generated_function generate(size_t offset)
{
#if defined(__x86_64__)
	static const unsigned char code[0x80] = {
		0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0x59, 0xff, 0xe1,
		[0x40] = 0x55, 0x53, 0xbd, 0x34, 0x12, 0x00, 0x00, 0x48, 0x83, 0xec, 0x28, 0xff, 0xd6,
			 0x48, 0x83, 0xc4, 0x28, 0x5b, 0x5d, 0xc3,
	};
#elif defined(__aarch64__)
	static const unsigned char code[0x80] = {
		0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x20, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
		[0x40] = 0xfd, 0x7b, 0xbf, 0xa9, 0xfd, 0x03, 0x00, 0x91, 0x20, 0x00, 0x3f, 0xd6, 0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6,
	};
#endif
	char *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	return (generated_function)(page + offset);
}

SHAPE long from_generated(long chain)
{
	return framed(chain, plain_outer) + 1;
}

SHAPE long from_frameless(long chain)
{
	return frameless(chain, plain_outer) + 1;
}

/* Made after the test was told to go on. */
SHAPE long from_late(long chain)
{
	return late(chain, plain_outer) + 1;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	static char stack[65536];
	stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_handler = on_signal };
	pthread_t thread;

	framed = generate(0);
	frameless = generate(0x40);
	sigaltstack(&other, 0);
	sigaction(SIGUSR1, &action, 0);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, 0);
	if (argc > 2) {
		puts("ready");
		fflush(stdout);
		getchar();
	}
	if (argc > 3) { /* frames N wait late */
		late = generate(0x40);
		for (long i = 0; i < rounds; i++) {
			from_late(CHAIN_GENERATED_LATE);
			usleep(100000);
		}
		return 0;
	}
	for (long i = 0; i < rounds; i++) {
		plain_outer(CHAIN_PLAIN);
		big_frame(CHAIN_BIG);
		dynamic_frame(CHAIN_DYNAMIC);
		realigned(CHAIN_REALIGNED);
		signalled(SIGUSR1);
		signalled(SIGUSR2);
		jumped_over(CHAIN_ENDS_IN_CALL);
		through_library(CHAIN_LIBRARY);
		above_probed(CHAIN_PROBED);
		probed_jumped_over(CHAIN_PROBED_JUMPED);
		recursive(40);
		from_generated(CHAIN_GENERATED);
		from_frameless(CHAIN_GENERATED_FRAME);
		pthread_create(&thread, 0, in_thread, (void *)CHAIN_THREAD);
		pthread_join(thread, 0);
	}
	return 0;
}
