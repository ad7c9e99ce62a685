/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * How the verifier's work stays small. It follows every way through a program, and
 * through a function again for each state in which it is called; inside bpf_loop it
 * tells even states apart that no later instruction can. A global function it looks
 * at once, by itself, for any arguments: what is written for it checks its pointers,
 * and returns what the verifier is not to know anything of.
 *
 * Where preemption is off, Linux 6.10 to 6.14 refuse to call one. Those that need
 * the guard (6.13) get the same functions as static ones: bpf/guard.go.
 */
#ifndef EBPFPROF_VERIFIED_H
#define EBPFPROF_VERIFIED_H

#define VERIFIED_ONCE __attribute__((noinline, unused))

#endif
