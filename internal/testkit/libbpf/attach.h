/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What libbpfgo does not have of libbpf: probes with cookies, and many at once. */
#ifndef EBPFPROF_ATTACH_H
#define EBPFPROF_ATTACH_H

#include <stdbool.h>
#include <bpf/libbpf.h>

static struct bpf_link *attach_all(void *program, int pid, const char *path, const unsigned long *offsets,
		const unsigned long *counters, const __u64 *cookies, size_t count, bool ret)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, how, .offsets = offsets, .ref_ctr_offsets = counters, .cookies = cookies,
		.cnt = count, .retprobe = ret);
	return bpf_program__attach_uprobe_multi(program, pid, path, 0, &how);
}

static struct bpf_link *attach_one(void *program, int pid, const char *path, size_t offset, size_t counter, __u64 cookie, bool ret)
{
	LIBBPF_OPTS(bpf_uprobe_opts, how, .ref_ctr_offset = counter, .bpf_cookie = cookie, .retprobe = ret);
	return bpf_program__attach_uprobe_opts(program, pid, path, offset, &how);
}

#endif
