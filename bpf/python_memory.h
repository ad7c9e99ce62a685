/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What the Python walk reads of its thread: a few large pieces, as a read takes as long for a word. */
#ifndef EBPFPROF_PYTHON_MEMORY_H
#define EBPFPROF_PYTHON_MEMORY_H

#include "stack.h"

#define PYTHON_MEMORY_BYTES 256

/* A read of a thread's memory takes as long as two hundred instructions, however
 * little it reads. Since 3.11 frames lie side by side, the callers below: those in
 * so many bytes are read at once. So is what lies on the C stack, the callers above. */
#define PYTHON_WINDOW 2048
#define PYTHON_PIECE 128	/* at least a frame */
#define PYTHON_C_STACK (1ULL << 26)	/* what is so near above the stack pointer is on it */

enum python_window {
	PYTHON_FRAMES,
	PYTHON_ON_C_STACK,
	PYTHON_WINDOWS,
};

/* What a walk has read: of no use when it is over. */
struct python_memory {
	__u64 state[PYTHON_MEMORY_BYTES / 8];
	__u64 code[PYTHON_MEMORY_BYTES / 8];
	__u64 sp;
	__u32 tgid;
	__u32 checked;	/* known code objects that were read all the same */
	__u32 differed;	/* of those: another one was there */
	__u32 apart;	/* 1: frames do not lie side by side */
	__u64 window_at[PYTHON_WINDOWS];	/* the address of its first byte */
	__u64 window_bytes[PYTHON_WINDOWS];	/* that were read; 0: none */
	__u64 window[PYTHON_WINDOWS][PYTHON_WINDOW / 8];
};

/* Fields of what was read. The mask is the verifier's proof; offsets are aligned. */
#define PYTHON_WORD(memory, offset) (*(__u64 *)((char *)(memory) + ((offset) & 0xf8)))
#define PYTHON_INT(memory, offset) (*(__u32 *)((char *)(memory) + ((offset) & 0xfc)))

static __always_inline bool python_read_word(__u64 *value, __u64 address)
{
	*value = 0;
	return bpf_probe_read_user(value, sizeof(*value), (void *)address) == 0;
}

/* Fields of a piece that is found in the windows. */
#define PYTHON_PIECE_AT(m, at, offset, align) \
	((char *)(m)->window + (((at) + (offset)) & (PYTHON_WINDOWS * PYTHON_WINDOW - (align))))
#define PYTHON_PIECE_WORD(m, at, offset) (*(__u64 *)PYTHON_PIECE_AT(m, at, offset, 8))
#define PYTHON_PIECE_INT(m, at, offset) (*(__u32 *)PYTHON_PIECE_AT(m, at, offset, 4))
#define PYTHON_PIECE_BYTE(m, at, offset) (*(__u8 *)PYTHON_PIECE_AT(m, at, offset, 1))

/*
 * Moves a window to where a piece is whose neighbours will be wanted: of frames
 * those below it, in its page, which surely exists, of the C stack those above.
 * Where so much can not be read, and before 3.11, when each frame was an object of
 * its own, to the piece alone.
 */
VERIFIED_ONCE int python_move_window(struct python_memory *m, __u32 window, __u64 address, __u32 bytes)
{
	__u64 first = address, size = PYTHON_WINDOW, *to;

	if (!m)
		return -1;
	window &= PYTHON_WINDOWS - 1;
	to = m->window[window];
	if (window == PYTHON_FRAMES) {
		__u64 below = address & (SMALLEST_PAGE - 8);

		if (below > PYTHON_WINDOW - PYTHON_PIECE)
			below = PYTHON_WINDOW - PYTHON_PIECE;
		if (m->apart)
			below = 0;
		first -= below;
		size = below + bytes;
	}
	m->window_at[window] = first;
	m->window_bytes[window] = size;
	OPAQUE(size);	/* what is compared is what the verifier sees used */
	if (size <= PYTHON_WINDOW && !bpf_probe_read_user(to, size, (void *)first))
		return 0;
	if (window == PYTHON_ON_C_STACK) {
		/* The stack may end behind this page. */
		size = SMALLEST_PAGE - (address & (SMALLEST_PAGE - 1));
		m->window_bytes[window] = size;
		OPAQUE(size);
		if (size >= bytes && size <= PYTHON_WINDOW && !bpf_probe_read_user(to, size, (void *)address))
			return 0;
	}
	m->window_at[window] = address;
	m->window_bytes[window] = bytes;
	OPAQUE(bytes);
	if (bytes <= PYTHON_PIECE && !bpf_probe_read_user(to, bytes, (void *)address))
		return 0;
	m->window_bytes[window] = 0;
	return -1;
}

/* Finds a piece of memory of at most PYTHON_PIECE bytes in the windows; a negative
 * number where it can not be read. */
static __always_inline __s64 python_find_piece(struct python_memory *m, __u64 address, __u32 bytes)
{
	/* Either window: 1, PYTHON_ON_C_STACK, if the address is near above the stack pointer. */
	__u64 window = same((address - m->sp) / PYTHON_C_STACK, 0), at;

	at = address - m->window_at[window];
	if (at > PYTHON_WINDOW || at + bytes > m->window_bytes[window] || (at & 7)) {
		if (python_move_window(m, window, address, bytes))
			return -1;
		at = address - m->window_at[window];
	}
	return window * PYTHON_WINDOW + at;
}

/* Reads a word of what most versions have on the C stack. */
static __noinline bool python_read_link(struct python_memory *m, __u64 *value, __u64 address)
{
	__s64 at = python_find_piece(m, address, 8);

	*value = 0;
	if (at < 0)
		return false;
	*value = PYTHON_PIECE_WORD(m, at, 0);
	return true;
}

#endif
