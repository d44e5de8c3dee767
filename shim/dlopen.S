// dlopen as programs see it: a word with deepbind.cpp, then a jump to the C library's own, with the stack as the caller left it
// (it searches by the caller's RUNPATH and into the caller's namespace).
//
//   void* gpucap_route_dlopen(const char* file, int flags)      the function to jump to

#if defined(__x86_64__)

    .text
    .globl dlopen
    .type dlopen, @function
    .p2align 4
dlopen:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    call gpucap_route_dlopen
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    jmp *%rax
    .cfi_endproc
    .size dlopen, .-dlopen

#elif defined(__aarch64__)

    .text
    .globl dlopen
    .type dlopen, @function
    .p2align 4
dlopen:
    .cfi_startproc
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    bl gpucap_route_dlopen
    mov x9, x0
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    br x9
    .cfi_endproc
    .size dlopen, .-dlopen

#else
#error "gpucap needs a dlopen for this processor: see the two above"
#endif

    .section .note.GNU-stack, "", %progbits
