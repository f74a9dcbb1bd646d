// The entry of a program, as crt1.o of glibc before 2.34 has it: it hands what runs
// before main to the C library, which from 2.34 on would find that by itself.
	.globl _start
	.type _start, %function
_start:
	mov x29, #0
	mov x30, #0
	mov x5, x0                // rtld_fini
	ldr x1, [sp, #0]          // argc
	add x2, sp, #8            // argv
	mov x6, sp                // stack end
	adrp x0, :got:main
	ldr x0, [x0, #:got_lo12:main]
	adrp x3, init
	add x3, x3, #:lo12:init
	mov x4, #0                // fini: none
	bl __libc_start_main
	bl abort
	.size _start, .-_start

// init calls what the program wants called before main, with main's arguments.
	.type init, %function
init:
	stp x29, x30, [sp, #-64]!
	mov x29, sp
	stp x19, x20, [sp, #16]
	stp x21, x22, [sp, #32]
	str x23, [sp, #48]
	mov x19, x0
	mov x20, x1
	mov x21, x2
	adrp x22, __init_array_start
	add x22, x22, #:lo12:__init_array_start
	adrp x23, __init_array_end
	add x23, x23, #:lo12:__init_array_end
1:	cmp x22, x23
	b.hs 2f
	ldr x3, [x22], #8
	mov x0, x19
	mov x1, x20
	mov x2, x21
	blr x3
	b 1b
2:	ldr x23, [sp, #48]
	ldp x21, x22, [sp, #32]
	ldp x19, x20, [sp, #16]
	ldp x29, x30, [sp], #64
	ret
	.size init, .-init
	.hidden __init_array_start
	.hidden __init_array_end
	.section .note.GNU-stack,"",%progbits
