/* Which chain frames_leaf was reached through: its argument. */
enum chain {
	CHAIN_PLAIN,
	CHAIN_BIG,
	CHAIN_DYNAMIC,
	CHAIN_REALIGNED,
	CHAIN_SIGNAL,
	CHAIN_SIGNAL_STACK,
	CHAIN_ENDS_IN_CALL,
	CHAIN_LIBRARY,
	CHAIN_PROBED,
	CHAIN_PROBED_JUMPED,
	CHAIN_RECURSIVE,
	CHAIN_GENERATED,
	CHAIN_GENERATED_FRAME,
	CHAIN_GENERATED_LATE,
	CHAIN_THREAD,
};

/* In a library of its own, without frame pointers. */
long frames_call(void (*callback)(long), long argument);
