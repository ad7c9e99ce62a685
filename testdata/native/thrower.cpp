// A library whose functions end by return or by exception.
#include "thrower.h"

#include <cstring>
#include <stdexcept>

namespace thrower {

static volatile long sink;

__attribute__((noipa)) static long inner(const std::string &text, long n)
{
	char copy[64];
	std::strncpy(copy, text.c_str(), sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = 0;
	sink = sink + copy[0];
	if (n % 4 == 3)
		throw std::runtime_error(text);
	return n;
}

// One call in four leaves by exception; a destructor runs either way.
__attribute__((noipa)) long maybe(long n)
{
	std::string text("call " + std::to_string(n));
	return inner(text, n) + 1;
}

// The exception passes through three frames of this function.
__attribute__((noipa)) long nested(long depth, long n)
{
	std::string text("depth " + std::to_string(depth));
	return depth == 0 ? maybe(n) : nested(depth - 1, n) + static_cast<long>(text.size());
}

// Catches what it calls: always returns.
__attribute__((noipa)) long shielded(long n)
{
	try {
		return maybe(n);
	} catch (const std::exception &) {
		return -1;
	}
}

__attribute__((noipa)) long Worker::work(long n)
{
	calls_++;
	return maybe(n) + calls_;
}

} // namespace thrower
