/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The strings of a call, each a record of its own. */
#ifndef EBPFPROF_TEXT_H
#define EBPFPROF_TEXT_H

#include "maps.h"
#include "regs.h"
#include "capture.h"

/* The names of kernels are mangled templates; there are few of them. */
static __noinline int emit_long_text(__u64 address, __u64 span_id, __u32 index)
{
	struct long_text_record *r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);
	long n;

	if (!r) {
		lose(LOSS_TEXT_LOST);
		return 0;
	}
	r->kind = RECORD_TEXT;
	r->spec = index;
	r->span_id = span_id;
	n = bpf_probe_read_user_str(r->text, sizeof(r->text), (void *)address);
	if (n <= 0) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		lose(LOSS_READ_FAULT);
		return 1;
	}
	r->length = n - 1;
	r->cut = n == sizeof(r->text);
	if (r->cut)
		lose(LOSS_TEXT_CUT);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __noinline int emit_text(const struct probe_spec *spec, __u64 address, __u64 span_id,
				__u32 index)
{
	__u64 data = address, length = 0;
	struct text_record *r;
	long n;

	if (spec->text != TEXT_C && !read_word(&data, address))
		goto fault;
	if (spec->text == TEXT_STRING && !read_word(&length, address + 8))
		goto fault;
	if (spec->text == TEXT_STRING_COW && !read_word(&length, data - 24))
		goto fault;
	r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);
	if (!r) {
		lose(LOSS_TEXT_LOST);
		return 0;
	}
	r->kind = RECORD_TEXT;
	r->spec = index;
	r->span_id = span_id;
	n = bpf_probe_read_user_str(r->text, sizeof(r->text), (void *)data);
	if (n <= 0) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		goto fault;
	}
	/* The terminating NUL counts in n. A full buffer was cut, unless its length says otherwise. */
	r->length = n - 1;
	r->cut = n == sizeof(r->text) &&
		 (spec->text == TEXT_C || spec->text == TEXT_PYTHON_TYPE || length >= sizeof(r->text));
	if (r->cut)
		lose(LOSS_TEXT_CUT);
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
fault:
	lose(LOSS_READ_FAULT);
	return 1;
}

/* What is no string: the reader looks for one in it. That it is cut is no loss. */
static __noinline int emit_bytes(__u64 address, __u64 length, __u64 span_id, __u32 index)
{
	struct long_text_record *r;
	__u32 n = length < LONG_TEXT_BYTES ? length : LONG_TEXT_BYTES - 1;

	r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);
	if (!r) {
		lose(LOSS_TEXT_LOST);
		return 0;
	}
	r->kind = RECORD_TEXT;
	r->spec = index;
	r->span_id = span_id;
	r->cut = 0;
	n &= LONG_TEXT_BYTES - 1;
	r->length = n;
	if (bpf_probe_read_user(r->text, n, (void *)address)) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		lose(LOSS_READ_FAULT);
		return 1;
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

/* PyTypeObject.tp_name, the first member behind PyVarObject: a char *. */
#define PYTHON_TYPE_NAME 24

/* The string behind one of several captures. */
VERIFIED_ONCE int emit_string(struct frame *f, __u32 i)
{
	struct text_record *r;
	long n;

	if (!f || i >= REGISTER_ARGS || !f->arg[i])
		return 0;
	r = bpf_ringbuf_reserve(&calls, sizeof(*r), 0);
	if (!r) {
		lose(LOSS_TEXT_LOST);
		return 0;
	}
	r->kind = RECORD_TEXT;
	r->spec = f->spec;
	r->span_id = f->span_id;
	n = bpf_probe_read_user_str(r->text, sizeof(r->text), (void *)f->arg[i]);
	if (n <= 0) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		f->faults |= 1U << i;
		lose(LOSS_READ_FAULT);
		return 0;
	}
	r->length = n - 1;
	r->cut = i << 1;
	if (n == sizeof(r->text)) {
		r->cut |= 1;
		lose(LOSS_TEXT_CUT);
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return 0;
}

static __noinline int emit_strings(const struct probe_spec *spec, struct frame *f)
{
	for (__u32 i = 0; i < REGISTER_ARGS; i++) {
		if (spec->text_register & (1U << i))
			emit_string(f, i);
	}
	return 0;
}

static __noinline int open_text(struct pt_regs *ctx, const struct probe_spec *spec, struct frame *f)
{
	__u64 regs[REGISTER_ARGS];

	if (spec->text == TEXT_EACH)
		return emit_strings(spec, f);
	if (spec->text == TEXT_BLOB) {
		__u32 n = spec->text_register & (REGISTER_ARGS - 1);

		if (emit_bytes(f->arg[n], f->arg[n + 1], f->span_id, f->spec))
			f->faults |= 1U << 31;
		return 0;
	}
	if (spec->text == TEXT_PYTHON_TYPE) {
		__u64 type = f->arg[spec->text_register & (REGISTER_ARGS - 1)];

		if (emit_text(spec, type + PYTHON_TYPE_NAME, f->span_id, f->spec))
			f->faults |= 1U << 31;
		return 0;
	}
	reg_args(ctx, regs);
	if (spec->flags & SPEC_LONG_TEXT) {
		if (emit_long_text(regs[spec->text_register & (REGISTER_ARGS - 1)], f->span_id, f->spec))
			f->faults |= 1U << 31;
	} else if (emit_text(spec, regs[spec->text_register & (REGISTER_ARGS - 1)], f->span_id, f->spec)) {
		f->faults |= 1U << 31;
	}
	return 0;
}

/* A string that the call hands out. */
static __noinline int close_text(const struct probe_spec *spec, struct frame *f)
{
	__u32 n = spec->text_register & (REGISTER_ARGS - 1);

	if (f->arg[n] && emit_long_text(f->arg[n], f->span_id, f->spec))
		f->faults |= 1U << 31;
	return 0;
}

#endif
