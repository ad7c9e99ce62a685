/* The library between a chain's two halves. */
#include "frames.h"

static volatile long calls;

long frames_call(void (*callback)(long), long argument)
{
	callback(argument);
	return ++calls;
}
