/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* A function's arguments and results where the ABI puts them. */
#ifndef EBPFPROF_REGS_H
#define EBPFPROF_REGS_H

/* How many words reg_args fills. The registers are copied before one is chosen:
 * the verifier refuses a computed offset into the context. */
#define REGISTER_ARGS 8

#if defined(__TARGET_ARCH_x86)
#define REG_SP(ctx) ((ctx)->sp)
#define REG_PC(ctx) ((ctx)->ip)
#define REG_RET(ctx) ((ctx)->ax)
/* A return pops the return address: at a return probe the stack pointer is one
 * word above where it was at the entry. */
#define RETURN_POP 8
/* The first stack argument lies above the return address. */
#define STACK_ARGS 8
/* The return address is the word below the stack arguments: it is read with
 * them, to the place of a register that this ABI passes nothing in. */
#define CALLER_WORD 7
#define CALLER_ON_STACK 1
#define STACK_WORDS_FIRST CALLER_WORD
/* Values in the order of the arguments: from this one on they are what a read of
 * the stack brings, the return address first, which then makes room for the
 * last of the registers. */
#define STACK_VALUES_FIRST 5
#define REGISTERS_IN_ORDER 6
#define STACK_VALUES 0

static __always_inline void reg_caller(struct pt_regs *ctx, __u64 *words)
{
}

static __always_inline void args_in_order(struct pt_regs *ctx, __u64 *arg, __u64 *caller)
{
	*caller = arg[STACK_VALUES_FIRST];
	arg[0] = ctx->di;
	arg[1] = ctx->si;
	arg[2] = ctx->dx;
	arg[3] = ctx->cx;
	arg[4] = ctx->r8;
	arg[5] = ctx->r9;
}

static __always_inline void reg_args(struct pt_regs *ctx, __u64 *regs)
{
	regs[0] = ctx->di;
	regs[1] = ctx->si;
	regs[2] = ctx->dx;
	regs[3] = ctx->cx;
	regs[4] = ctx->r8;
	regs[5] = ctx->r9;
	regs[6] = 0;
	regs[7] = 0;
}
#elif defined(__TARGET_ARCH_arm64)
#define REG_SP(ctx) ((ctx)->sp)
#define REG_PC(ctx) ((ctx)->pc)
#define REG_RET(ctx) ((ctx)->regs[0])
#define RETURN_POP 0
#define STACK_ARGS 0
/* The return address is in the link register until the function saves it: it
 * takes the place of the last stack argument, which no captured call has. */
#define CALLER_WORD 15
#define CALLER_ON_STACK 0
#define STACK_WORDS_FIRST REGISTER_ARGS
#define STACK_VALUES_FIRST REGISTER_ARGS
#define REGISTERS_IN_ORDER REGISTER_ARGS
#define STACK_VALUES STACK_ARGS

static __always_inline void reg_caller(struct pt_regs *ctx, __u64 *words)
{
	words[CALLER_WORD] = ctx->regs[30];
}

static __always_inline void args_in_order(struct pt_regs *ctx, __u64 *arg, __u64 *caller)
{
	*caller = ctx->regs[30];
	for (int i = 0; i < REGISTER_ARGS; i++)
		arg[i] = ctx->regs[i];
}

static __always_inline void reg_args(struct pt_regs *ctx, __u64 *regs)
{
	regs[0] = ctx->regs[0];
	regs[1] = ctx->regs[1];
	regs[2] = ctx->regs[2];
	regs[3] = ctx->regs[3];
	regs[4] = ctx->regs[4];
	regs[5] = ctx->regs[5];
	regs[6] = ctx->regs[6];
	regs[7] = ctx->regs[7];
}
#endif

#endif
