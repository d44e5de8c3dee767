// dlsym and dlvsym as programs see them. glibc tells the caller by its return address (for RTLD_NEXT), so everything that is not
// ours must be handed on by a jump, with the stack as the caller left it; C++ would make it a call at -O0, with sanitizers and
// with coverage. The routing functions answer in two registers: whether the answer is ready, and the answer; or else the function
// to jump to.
//
//   struct { uint64_t ready; void* value; } gpucap_route_dlsym(void* handle, const char* name, void* caller)
//   struct { uint64_t ready; void* value; } gpucap_route_dlvsym(void* handle, const char* name, const char* version)

#if defined(__x86_64__)

    .text
    .globl dlsym
    .type dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    subq $8, %rsp
    .cfi_adjust_cfa_offset 8
    movq 24(%rsp), %rdx
    call gpucap_route_dlsym
    addq $8, %rsp
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz 1f
    movq %rdx, %rax
    ret
1:  jmp *%rdx
    .cfi_endproc
    .size dlsym, .-dlsym

    .globl dlvsym
    .type dlvsym, @function
    .p2align 4
dlvsym:
    .cfi_startproc
    endbr64
    pushq %rdi
    .cfi_adjust_cfa_offset 8
    pushq %rsi
    .cfi_adjust_cfa_offset 8
    pushq %rdx
    .cfi_adjust_cfa_offset 8
    call gpucap_route_dlvsym
    movq %rdx, %rcx
    popq %rdx
    .cfi_adjust_cfa_offset -8
    popq %rsi
    .cfi_adjust_cfa_offset -8
    popq %rdi
    .cfi_adjust_cfa_offset -8
    testq %rax, %rax
    jz 1f
    movq %rcx, %rax
    ret
1:  jmp *%rcx
    .cfi_endproc
    .size dlvsym, .-dlvsym

#elif defined(__aarch64__)

    .text
    .globl dlsym
    .type dlsym, @function
    .p2align 4
dlsym:
    .cfi_startproc
    stp x29, x30, [sp, #-32]!
    .cfi_def_cfa_offset 32
    .cfi_offset 29, -32
    .cfi_offset 30, -24
    mov x29, sp
    stp x0, x1, [sp, #16]
    mov x2, x30
    bl gpucap_route_dlsym
    mov x9, x0
    mov x10, x1
    ldp x0, x1, [sp, #16]
    ldp x29, x30, [sp], #32
    .cfi_def_cfa_offset 0
    cbz x9, 1f
    mov x0, x10
    ret
1:  br x10
    .cfi_endproc
    .size dlsym, .-dlsym

    .globl dlvsym
    .type dlvsym, @function
    .p2align 4
dlvsym:
    .cfi_startproc
    stp x29, x30, [sp, #-48]!
    .cfi_def_cfa_offset 48
    .cfi_offset 29, -48
    .cfi_offset 30, -40
    mov x29, sp
    stp x0, x1, [sp, #16]
    str x2, [sp, #32]
    bl gpucap_route_dlvsym
    mov x9, x0
    mov x10, x1
    ldp x0, x1, [sp, #16]
    ldr x2, [sp, #32]
    ldp x29, x30, [sp], #48
    .cfi_def_cfa_offset 0
    cbz x9, 1f
    mov x0, x10
    ret
1:  br x10
    .cfi_endproc
    .size dlvsym, .-dlvsym

#else
#error "gpucap needs a dlsym for this processor: see the two above"
#endif

    .section .note.GNU-stack, "", %progbits
