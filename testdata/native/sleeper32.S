/* A 32-bit program for x86 that says it is ready and sleeps a minute. It needs
 * no 32-bit libraries, only a kernel with CONFIG_IA32_EMULATION. */
	.code32
	.text
	.globl _start
_start:
	mov $4, %eax		/* write(1, ready, 6) */
	mov $1, %ebx
	mov $ready, %ecx
	mov $6, %edx
	int $0x80
	mov $162, %eax		/* nanosleep(minute, 0) */
	mov $minute, %ebx
	xor %ecx, %ecx
	int $0x80
	mov $1, %eax		/* exit(0) */
	xor %ebx, %ebx
	int $0x80
	.section .rodata
ready:	.ascii "ready\n"
minute:	.long 60, 0
	.section .note.GNU-stack, "", @progbits
