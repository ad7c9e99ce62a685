/* Entry points with the code of the real libcuda's: a comparison with a flag, a
 * conditional jump, an indirect jump through a table that a tool may replace,
 * and another way behind it. All that is seen of it is that the arguments and
 * the return address are where the caller put them until the end. */
#ifndef STUB_THUNK_H
#define STUB_THUNK_H

#if defined(__x86_64__)
#define THUNK(name, implementation)                                                                \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"          \
		"cmpl $0x321cba00, stub_flag(%rip)\n"                                              \
		"je 1f\n"                                                                          \
		"notrack jmp *slot_" #name "(%rip)\n"                                              \
		"1: jmp impl_" #implementation "\n"                                                \
		".size " #name ", . - " #name "\n"                                                 \
		".section .data.rel.local,\"aw\",@progbits\n.p2align 3\n"                          \
		"slot_" #name ": .quad impl_" #implementation "\n.text\n");
#else
#define THUNK(name, implementation)                                                                \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",%function\n" #name ":\n"          \
		"b impl_" #implementation "\n.size " #name ", . - " #name "\n");
#endif

#endif
