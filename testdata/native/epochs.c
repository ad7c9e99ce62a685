/*
 * bpf/stack_epoch.h in user space, with a forged clock: of each stack on its
 * standard input, an id and the time of a sample of it, it tells whether its
 * frames are sent, as name_stack of bpf/stacks.h does.
 */
#include <linux/types.h>
#include <stdio.h>

#include "../../bpf/stack_epoch.h"

int main(void)
{
	static __u64 seen[1 << STACKS_SEEN_BITS];
	unsigned long long id, now_ns;

	while (scanf("%llx %llu", &id, &now_ns) == 2) {
		__u64 *word = &seen[stack_place(id)], sent = stack_sent(id, stack_epoch(id, now_ns));

		puts(*word == sent ? "known" : "sent");
		*word = sent;
	}
	return 0;
}
