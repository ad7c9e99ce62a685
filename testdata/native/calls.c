/* Calls every function of callee.h a known number of times and says how often.
 *
 *   calls [ROUNDS] [wait]     with wait, goes on at a line on standard input */
#include "callee.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1000, sum = 0;
	struct message m = {"a message", {1, 2, 3, 4}};

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (argc > 2 && strcmp(argv[2], "wait") == 0 && getchar() == EOF)
		return 1;
	for (long i = 0; i < rounds; i++) {
		sum += callee_plain(i, 2);
		sum += callee_protected("some text", i);
		sum += callee_branchy(i);
		sum += callee_loop_at_entry(i % 50);
		sum += callee_recursive(3);
		sum += callee_alloca(16 + i % 100);
		sum += callee_tail(i);
		sum += callee_indirect_tail(callee_branchy, i);
		sum += callee_many(1, 2, 3, 4, 5, 6, 7, i);
		sum += callee_message(&m, sizeof(m));
	}
	printf("{\"truth\": {\"pid\": %d, \"sum\": %ld, \"calls\": {"
	       "\"callee_plain\": %ld, \"callee_protected\": %ld, \"callee_branchy\": %ld, "
	       "\"callee_loop_at_entry\": %ld, \"callee_recursive\": %ld, \"callee_alloca\": %ld, "
	       "\"callee_tail\": %ld, \"callee_indirect_tail\": %ld, \"callee_many\": %ld, "
	       "\"callee_message\": %ld}}}\n",
	       (int)getpid(), sum, 2 * rounds, rounds, 2 * rounds, rounds, 4 * rounds, rounds,
	       rounds, rounds, rounds, rounds);
	return 0;
}
