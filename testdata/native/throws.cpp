// Calls thrower's functions, catches what they throw, says how many did.
//
//   throws [ROUNDS] [wait] [forks]
//
// A SIGTERM ends it early, with the truth about what it did. With forks it has a
// child now and then, which throws too and has to end well.
#include "thrower.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <sys/wait.h>
#include <unistd.h>

static volatile std::sig_atomic_t stopping;

template <typename Call> static long caught(Call call)
{
	try {
		call();
		return 0;
	} catch (const std::exception &) {
		return 1;
	}
}

// A child that throws and catches like its parent; reports whether it ended well.
static bool child_ends_well(long i)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		for (long j = 0; j < 10; j++)
			caught([&] { thrower::maybe(i + j); });
		_exit(7);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7;
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
	bool forks = argc > 3 && std::strcmp(argv[3], "forks") == 0;
	long done = 0, harmed = 0;

	std::signal(SIGTERM, [](int) { stopping = 1; });
	for (long i = 0; i < rounds && !stopping; i++, done++) {
		if (forks && i % 20000 == 0)
			harmed += !child_ends_well(i);
		maybe += caught([&] { thrower::maybe(i); });
		nested += caught([&] { thrower::nested(2, i); });
		work += caught([&] { worker.work(i); });
		inside += thrower::shielded(i) == -1;
	}
	std::printf("{\"truth\": {\"pid\": %d, \"calls\": {\"maybe\": %ld, \"nested\": %ld, "
		    "\"shielded\": %ld, \"Worker::work\": %ld}, \"threw\": {\"maybe\": %ld, "
		    "\"nested\": %ld, \"shielded\": 0, \"Worker::work\": %ld}}}\n",
		    static_cast<int>(getpid()), 4 * done, 3 * done, done, done,
		    maybe + nested + work + inside, 3 * nested, work);
	return harmed ? 3 : 0;
}
