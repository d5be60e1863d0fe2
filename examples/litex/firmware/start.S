/* From reset to main: the stack, initialized data, zeros. What goes wrong ends in a loop, which the simulation notices. */
    .section .init, "ax"
    .globl _start
_start:
    .option push
    .option norelax
    la gp, __global_pointer$
    .option pop
    la sp, _stack
    la t0, _trap
    csrw mtvec, t0
    la t0, _data_rom
    la t1, _data
    la t2, _data_end
1:  bgeu t1, t2, 2f
    lw t3, 0(t0)
    sw t3, 0(t1)
    addi t0, t0, 4
    addi t1, t1, 4
    j 1b
2:  la t2, _bss_end
3:  bgeu t1, t2, 4f
    sw zero, 0(t1)
    addi t1, t1, 4
    j 3b
4:  call main
    .balign 4
_trap:
    j _trap

    .section .rodata.tensors, "a"
    .balign 32
    .globl tensors
tensors:
    .incbin "tensors.bin"
