/* SPDX-License-Identifier: BSD-3-Clause */
#include "src/chooser/jumps.h"

/* In assembly the arguments need not be known, and pass untouched. Whoever unwinds the stack finds
 * the caller. The code must not change the flags of a sanitizer or the stack, and calls are jumps,
 * so that the module's function returns to the program. */

#if defined(__x86_64__)

__asm__(
    ".set sluice_index, 0\n"
    ".macro sluice_jump name\n"
    "  .p2align 4\n"
    "\\name:\n"
    "  .cfi_startproc\n"
    "  jmp *sluice_jumps + 8 * sluice_index(%rip)\n"
    "7:\n"
    "  pushq $sluice_index\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  jmp sluice_first_call\n"
    "  .cfi_endproc\n"
    "  sluice_entry \\name\n"
    ".endm\n"

    ".text\n"
    ".p2align 4\n"
    "sluice_first_call:\n"
    "  .cfi_startproc\n"
    "  .cfi_def_cfa_offset 16\n"
    "  pushq %rdi\n"
    "  pushq %rsi\n"
    "  pushq %rdx\n"
    "  pushq %rcx\n"
    "  pushq %r8\n"
    "  pushq %r9\n"
    "  .cfi_adjust_cfa_offset 48\n"
    "  movl 48(%rsp), %edi\n"
    "  movq 56(%rsp), %rsi\n"
    "  call sluice_choose\n"
    "  popq %r9\n"
    "  popq %r8\n"
    "  popq %rcx\n"
    "  popq %rdx\n"
    "  popq %rsi\n"
    "  popq %rdi\n"
    "  addq $8, %rsp\n"
    "  .cfi_adjust_cfa_offset -56\n"
    "  jmp *%rax\n"
    "  .cfi_endproc\n"
    "  .type sluice_first_call, @function\n"
    "  .size sluice_first_call, . - sluice_first_call\n");

#elif defined(__aarch64__)

/* (ldar: what the module's loading has written is seen before its code runs.) */
__asm__(
    ".set sluice_index, 0\n"
    ".macro sluice_jump name\n"
    "  .p2align 4\n"
    "\\name:\n"
    "  .cfi_startproc\n"
    "  hint #34\n" /* bti c */
    "  adrp x16, sluice_jumps + 8 * sluice_index\n"
    "  add x16, x16, :lo12:sluice_jumps + 8 * sluice_index\n"
    "  ldar x16, [x16]\n"
    "  br x16\n"
    "7:\n"
    "  hint #34\n"
    "  mov w17, #sluice_index\n"
    "  b sluice_first_call\n"
    "  .cfi_endproc\n"
    "  sluice_entry \\name\n"
    ".endm\n"

    ".text\n"
    ".p2align 4\n"
    "sluice_first_call:\n"
    "  .cfi_startproc\n"
    "  stp x29, x30, [sp, #-96]!\n"
    "  .cfi_def_cfa_offset 96\n"
    "  .cfi_offset x29, -96\n"
    "  .cfi_offset x30, -88\n"
    "  mov x29, sp\n"
    "  stp x0, x1, [sp, #16]\n"
    "  stp x2, x3, [sp, #32]\n"
    "  stp x4, x5, [sp, #48]\n"
    "  stp x6, x7, [sp, #64]\n"
    "  mov w0, w17\n"
    "  mov x1, x30\n"
    "  bl sluice_choose\n"
    "  mov x16, x0\n"
    "  ldp x0, x1, [sp, #16]\n"
    "  ldp x2, x3, [sp, #32]\n"
    "  ldp x4, x5, [sp, #48]\n"
    "  ldp x6, x7, [sp, #64]\n"
    "  ldp x29, x30, [sp], #96\n"
    "  .cfi_restore x29\n"
    "  .cfi_restore x30\n"
    "  .cfi_def_cfa_offset 0\n"
    "  br x16\n"
    "  .cfi_endproc\n"
    "  .type sluice_first_call, %function\n"
    "  .size sluice_first_call, . - sluice_first_call\n");

#endif

#if defined(__x86_64__) || defined(__aarch64__)

__asm__(
    ".pushsection .data\n"
    ".p2align 3\n"
    ".hidden sluice_jumps\n"
    ".globl sluice_jumps\n"
    "sluice_jumps:\n"
    ".popsection\n"
    ".pushsection .data.rel.ro, \"aw\"\n"
    ".p2align 3\n"
    ".hidden sluice_first_jumps\n"
    ".globl sluice_first_jumps\n"
    "sluice_first_jumps:\n"
    ".popsection\n"
    ".hidden sluice_choose\n"

    /* What follows a function: its kind, and the tables' entries. */
    ".macro sluice_entry name\n"
    "  .globl \\name\n"
    "  .type \\name, %function\n"
    "  .size \\name, . - \\name\n"
    "  .pushsection .data\n"
    "  .quad 7b\n"
    "  .popsection\n"
    "  .pushsection .data.rel.ro, \"aw\"\n"
    "  .quad 7b\n"
    "  .popsection\n"
    "  .set sluice_index, sluice_index + 1\n"
    ".endm\n"

    ".macro sluice_mpi_jump name\n"
    "  sluice_jump PMPI_\\name\n"
    "  .globl MPI_\\name\n"
    "  .set MPI_\\name, PMPI_\\name\n"
    ".endm\n");

#define MPI_JUMP(name) __asm__("sluice_mpi_jump " #name "\n");
#define OWN_JUMP(name) __asm__("sluice_jump " #name "\n");
SLUICE_MPI_FUNCTIONS(MPI_JUMP)
SLUICE_OWN_FUNCTIONS(OWN_JUMP)

#elif defined(__LP64__)

/* Elsewhere in C: no function has more than nine arguments, each a number or an address in a
 * register or on the stack, and those behind a function's last are passed for nothing. (The caller
 * is known if the compiler makes jumps of last calls, as optimizing ones do.) */
typedef long Jump(long, long, long, long, long, long, long, long, long);
#define PARAMETERS long a, long b, long c, long d, long e, long f, long g, long h, long i
#define ARGUMENTS a, b, c, d, e, f, g, h, i
#define EXPORTED __attribute__((visibility("default")))

#define DEFINE(symbol, name)                                                                  \
  static long first_##name(PARAMETERS) {                                                      \
    void* const caller = __builtin_return_address(0);                                         \
    return ((Jump*)sluice_choose(sluice_index_##name, caller))(ARGUMENTS);                    \
  }                                                                                           \
  EXPORTED long symbol(PARAMETERS);                                                           \
  long symbol(PARAMETERS) {                                                                   \
    void* const jump = __atomic_load_n(&sluice_jumps[sluice_index_##name], __ATOMIC_ACQUIRE); \
    return ((Jump*)jump)(ARGUMENTS);                                                          \
  }
#define MPI_JUMP(name)      \
  DEFINE(PMPI_##name, name) \
  EXPORTED long MPI_##name(PARAMETERS) __attribute__((alias("PMPI_" #name)));
#define OWN_JUMP(name) DEFINE(name, name)
SLUICE_MPI_FUNCTIONS(MPI_JUMP)
SLUICE_OWN_FUNCTIONS(OWN_JUMP)

#define FIRST_ROW(name) (void*)&first_##name,
void* sluice_jumps[] = {SLUICE_MPI_FUNCTIONS(FIRST_ROW) SLUICE_OWN_FUNCTIONS(FIRST_ROW)};
void* const sluice_first_jumps[] = {SLUICE_MPI_FUNCTIONS(FIRST_ROW)
                                        SLUICE_OWN_FUNCTIONS(FIRST_ROW)};

#else
#error "Sluice needs 64 bits"
#endif
