/* Two libraries of one layout, whose code differs: where the impostor's function
 * begins, the innocent one has the second byte of an instruction, the number
 * that its function returns. */
	.text
	.balign 64
#ifdef IMPOSTOR
	.globl impostor
	.type impostor, @function
	nop
impostor:
	push %rbp
	mov %rsp, %rbp
	nop
	nop
	pop %rbp
	ret
	.size impostor, .-impostor
#else
	.globl answer
	.type answer, @function
answer:
	mov $45, %eax
	ret
	.size answer, .-answer
#endif
	.section .note.GNU-stack,"",@progbits
