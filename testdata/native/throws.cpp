// Calls thrower's functions, catches what they throw, says how many did.
//
//   throws [ROUNDS] [wait]
#include "thrower.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <unistd.h>

template <typename Call> static long caught(Call call)
{
	try {
		call();
		return 0;
	} catch (const std::exception &) {
		return 1;
	}
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? std::atol(argv[1]) : 1000;
	long maybe = 0, nested = 0, work = 0, inside = 0;
	thrower::Worker worker;

	std::printf("ready %d\n", static_cast<int>(getpid()));
	std::fflush(stdout);
	if (argc > 2 && std::strcmp(argv[2], "wait") == 0 && std::getchar() == EOF)
		return 1;
	for (long i = 0; i < rounds; i++) {
		maybe += caught([&] { thrower::maybe(i); });
		nested += caught([&] { thrower::nested(2, i); });
		work += caught([&] { worker.work(i); });
		inside += thrower::shielded(i) == -1;
	}
	std::printf("{\"truth\": {\"pid\": %d, \"calls\": {\"maybe\": %ld, \"nested\": %ld, "
		    "\"shielded\": %ld, \"Worker::work\": %ld}, \"threw\": {\"maybe\": %ld, "
		    "\"nested\": %ld, \"shielded\": 0, \"Worker::work\": %ld}}}\n",
		    static_cast<int>(getpid()), 4 * rounds, 3 * rounds, rounds, rounds,
		    maybe + nested + work + inside, 3 * nested, work);
	return 0;
}
