/* A rank whose device ends five collectives and not the two after that: they are open
 * until a line is read, and then their time has run out. */
#include "c10d.h"

#include <cstdio>
#include <thread>
#include <unistd.h>

#define ENDED 5
#define HANGING 2

int main()
{
	c10d::ProcessGroupNCCL group(1, 4);
	std::vector<at::Tensor> tensors(1);

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < ENDED + HANGING; i++)
		group.allreduce(tensors, {}).target->wait(0);
	std::thread([&] {
		for (int i = 0; i < ENDED; i++)
			group.end(false);
	}).join();
	puts("hanging");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	std::thread([&] {
		for (int i = 0; i < HANGING; i++)
			group.end(true);
	}).join();
	return group.debugger.ended != ENDED + HANGING;
}
