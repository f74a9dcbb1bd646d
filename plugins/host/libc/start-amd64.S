// The entry of a program, as crt1.o of glibc before 2.34 has it: it hands what runs
// before main to the C library, which from 2.34 on would find that by itself.
	.globl _start
	.type _start, @function
_start:
	xorl %ebp, %ebp
	movq %rdx, %r9            // rtld_fini
	popq %rsi                 // argc
	movq %rsp, %rdx           // argv
	andq $-16, %rsp
	pushq %rax
	pushq %rsp                // stack end
	xorl %r8d, %r8d           // fini: none
	leaq init(%rip), %rcx
	movq main@GOTPCREL(%rip), %rdi
	call *__libc_start_main@GOTPCREL(%rip)
	hlt
	.size _start, .-_start

// init calls what the program wants called before main, with main's arguments.
	.type init, @function
init:
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rdi, %r12
	movq %rsi, %r13
	movq %rdx, %r14
	leaq __init_array_start(%rip), %rbx
	leaq __init_array_end(%rip), %r15
1:	cmpq %r15, %rbx
	jae 2f
	movq %r12, %rdi
	movq %r13, %rsi
	movq %r14, %rdx
	call *(%rbx)
	addq $8, %rbx
	jmp 1b
2:	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	ret
	.size init, .-init
	.hidden __init_array_start
	.hidden __init_array_end
	.section .note.GNU-stack,"",@progbits
