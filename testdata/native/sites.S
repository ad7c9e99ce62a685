/* Functions that do nothing, one for each kind of first instruction. */
	.text
.macro function name
	.globl \name
	.type \name, @function
	.p2align 5
\name:
.endm

#if defined(__x86_64__)
function site_nop5
	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00
	ret
	.size site_nop5, .-site_nop5

function site_push
	push %rbp
	pop %rbp
	ret
	.size site_push, .-site_push

function site_endbr64
	endbr64
	push %rbp
	pop %rbp
	ret
	.size site_endbr64, .-site_endbr64

function site_sub
	sub $8, %rsp
	add $8, %rsp
	ret
	.size site_sub, .-site_sub

function site_jmp
	jmp 1f
1:	ret
	.size site_jmp, .-site_jmp

function site_mov
	mov %rdi, %rax
	ret
	.size site_mov, .-site_mov
#elif defined(__aarch64__)
function site_nop5
	nop
	ret
	.size site_nop5, .-site_nop5

function site_push
	stp x29, x30, [sp, -16]!
	ldp x29, x30, [sp], 16
	ret
	.size site_push, .-site_push

function site_endbr64
	bti c
	stp x29, x30, [sp, -16]!
	ldp x29, x30, [sp], 16
	ret
	.size site_endbr64, .-site_endbr64

function site_sub
	sub sp, sp, 16
	add sp, sp, 16
	ret
	.size site_sub, .-site_sub

function site_jmp
	b 1f
1:	ret
	.size site_jmp, .-site_jmp

function site_mov
	mov x1, x0
	ret
	.size site_mov, .-site_mov
#endif
	.section .note.GNU-stack, "", %progbits
