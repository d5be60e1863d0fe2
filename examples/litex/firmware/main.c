/* Firmware: tensors from ROM into main memory, compressed and decompressed there by the accelerator in several modes,
 * and a table of what came of it over the UART, which the host compares with the golden model.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <generated/csr.h>
#include <generated/mem.h>
#include <generated/soc.h>
#include <irq.h>
#ifdef CSR_SDRAM_BASE
#include <liblitedram/sdram.h>
#endif

#include "actcodec.h"

enum { CHANNELS = 4, VALUES = CHANNELS * 32 * 32, BYTES = 4 * VALUES, END = 4 };
static const uint32_t shape[] = {1, CHANNELS, 32, 32};

/* Main memory, as accelerator and processor see it. A tensor and what comes back are not at the same place of the
 * processor's cache, of 4 KiB, as they are compared. */
enum { TENSOR = MAIN_RAM_BASE, BACK = TENSOR + BYTES + 2048, PAYLOAD = BACK + BYTES, ROOM = BYTES + BYTES / 4,
       TABLE = PAYLOAD + ROOM, NOWHERE = MAIN_RAM_BASE + MAIN_RAM_SIZE };

extern const uint8_t tensors[]; /* start.S has them */
static const struct { const char *mode; unsigned tensor; } cases[] = {
    {"jpeg-act", 0}, {"mx", 0}, {"dpr-fp8", 0}, {"sfpr-zvc", 1}, {"brc", 1}};

/* ------------------------------------------------------------------------------------------------ the driver's hooks */
static uint32_t read_register(void *context, uint32_t offset) {
    (void)context;
    return *(volatile uint32_t *)(uintptr_t)(ACTCODEC_BASE + offset);
}

static void write_register(void *context, uint32_t offset, uint32_t word) {
    (void)context;
    *(volatile uint32_t *)(uintptr_t)(ACTCODEC_BASE + offset) = word;
}

static void *memory(void *context, uint64_t address, uint64_t size) {
    (void)context;
    if (address < MAIN_RAM_BASE || size > MAIN_RAM_SIZE || address - MAIN_RAM_BASE > MAIN_RAM_SIZE - size) return NULL;
    return (void *)(uintptr_t)address;
}

/* The data cache writes through, and the bus keeps order: memory has a word before a register is written. */
static void clean(void *context, uint64_t address, uint64_t size) {
    (void)context, (void)address, (void)size;
    __asm__ volatile("" ::: "memory");
}

/* VexRiscv drops its whole data cache. */
static void invalidate(void *context, uint64_t address, uint64_t size) {
    (void)context, (void)address, (void)size;
    flush_cpu_dcache();
    __asm__ volatile("" ::: "memory");
}

/* The interrupt is looked at, not taken, which keeps the bus free. */
static int wait_for(void *context) {
    uint32_t patience;
    (void)context;
    for (patience = 1000000; patience; patience--)
        if (irq_pending() & 1u << ACTCODEC_INTERRUPT) return 0;
    return 1;
}

static const struct actcodec_hooks hooks = {
    .read = read_register, .write = write_register, .memory = memory, .clean = clean, .invalidate = invalidate,
    .wait = wait_for}; /* payloads are in memory: no DMA engine */

/* ------------------------------------------------------------------------------------------------------- the console */
static int put(char letter, FILE *file) {
    (void)file;
    while (uart_txfull_read()) {}
    uart_rxtx_write((uint8_t)letter);
    return letter;
}

static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdout = &console;

/* -------------------------------------------------------------------------------------------------------- the figures */
/* Of a payload: a polynomial of its words, and of the bytes that are left, modulo 2^32; quick without a table. */
static uint32_t digest(uint32_t size) {
    const uint32_t *word = (const uint32_t *)PAYLOAD, *end = word + size / 4;
    const uint8_t *byte = (const uint8_t *)end;
    uint32_t sum = size;
    while (word != end) sum = 31 * sum + *word++;
    for (size %= 4; size; size--) sum = 31 * sum + *byte++;
    return sum;
}

/* The largest distance of values from those of the tensor, in `brc` from 1 where these are positive, 0 elsewhere; and
 * the same digest of the values. */
static float largest_error(int masks, uint32_t *sum) {
    const uint32_t *x = (const uint32_t *)TENSOR, *y = (const uint32_t *)BACK;
    uint32_t largest = 0, k;
    float a, b;
    *sum = BYTES;
    for (k = 0; k < VALUES; k++) {
        uint32_t wanted = !masks ? x[k] : (int32_t)x[k] > 0 ? 0x3f800000 : 0, distance;
        *sum = 31 * *sum + y[k];
        if (wanted == y[k]) continue;
        memcpy(&a, &wanted, sizeof a);
        memcpy(&b, &y[k], sizeof b);
        a -= b;
        memcpy(&distance, &a, sizeof distance);
        distance &= 0x7fffffff;
        if (distance > largest) largest = distance;
    }
    memcpy(&a, &largest, sizeof a);
    return a;
}

static int there_and_back(struct actcodec *device, struct actcodec_job *job, const char *mode) {
    static uint32_t words[CHANNELS];
    struct actcodec_counters there;
    uint32_t ratio, sum;
    float error;
    int outcome = actcodec_plan(device, job, mode, shape, 4);
    if (outcome) return outcome;
    job->address = TENSOR;
    job->scales = TABLE;
    job->payload = PAYLOAD;
    job->room = ROOM;
    job->words = words;
    if (job->mode->flags & ACTCODEC_SCALED) outcome = actcodec_scales(device, job);
    if (!outcome) outcome = actcodec_compress(device, job);
    if (outcome) return outcome;
    there = job->counters;
    job->address = BACK;
    outcome = actcodec_decompress(device, job);
    if (outcome) return outcome;
    ratio = (uint32_t)(100 * BYTES / job->size);
    error = largest_error(!strcmp(mode, "brc"), &sum);
    printf("%-9s %7" PRIu32 " %4" PRIu32 ".%02" PRIu32 " %8" PRIu32 " %8" PRIu32 " %9.6f  %08" PRIx32 "  %08" PRIx32
           "\n", mode, (uint32_t)job->size, ratio / 100, ratio % 100, (uint32_t)there.cycles,
           (uint32_t)job->counters.cycles, (double)error, digest((uint32_t)job->size), sum);
    return 0;
}

/* What is refused, and how the driver says it. */
static int refusals(struct actcodec *device, struct actcodec_job *job) {
    int outcome;
#ifndef CSR_SDRAM_BASE /* DDR3 answers at every address */
    job->address = NOWHERE;
    outcome = actcodec_compress(device, job);
    printf("compressed from where no memory is: %s\n", actcodec_text(outcome));
#endif
    job->address = TENSOR;
    job->room = job->size / 2;
    outcome = actcodec_compress(device, job);
    printf("compressed into half the room: %s; it takes %" PRIu32 " bytes\n", actcodec_text(outcome),
           (uint32_t)job->size);
    job->room = job->size;
    return actcodec_compress(device, job);
}

int main(void) {
    struct actcodec device;
    struct actcodec_job job;
    unsigned k;
    int outcome;
#ifdef CSR_SDRAM_BASE
    if (!sdram_init()) {
        printf("DDR3 is not as it should be\n%c", END);
        return 1;
    }
#endif
    outcome = actcodec_probe(&device, &hooks, NULL);
    irq_setmask(1u << ACTCODEC_INTERRUPT);
    if (!outcome) {
        printf("%u lane, payloads %s\n", device.cdus,
               device.payloads == ACTCODEC_PAYLOAD_MEMORY ? "in memory" : "in streams");
        printf("mode        bytes   ratio   cycles     back     error   payload    values\n");
    }
    for (k = 0; !outcome && k < sizeof cases / sizeof *cases; k++) {
        if (!k || cases[k].tensor != cases[k - 1].tensor)
            memcpy((void *)TENSOR, tensors + BYTES * cases[k].tensor, BYTES);
        outcome = there_and_back(&device, &job, cases[k].mode);
    }
    if (!outcome) outcome = refusals(&device, &job);
    printf("%s\n%c", actcodec_text(outcome), END);
    return 0;
}
