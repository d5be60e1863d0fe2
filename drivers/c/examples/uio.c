/* The driver in user space on Linux: a tensor there and back, through registers by UIO and memory by /dev/mem.
 *
 *     uio /dev/uio0 BUFFER [DMA]      addresses in hexadecimal
 *
 * UIO (uio_pdrv_genirq) gives the registers of the accelerator and its interrupt. The payload is in memory; with DMA,
 * it passes the streams, and the address is that of their DMA engine, an AXI DMA of Xilinx in simple mode with data of
 * 1024 bits and lengths of 20 bits or more. BUFFER is 1 MiB of memory that nobody else uses, such as a reserved-memory
 * node, which accelerator and engine have at the same address; opened with O_SYNC, it is not cached, so the cache hooks
 * are barriers. It may be mapped as a device's, so it is accessed word by word. Needs root.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#define _DEFAULT_SOURCE
#define _FILE_OFFSET_BITS 64

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "actcodec.h"

enum { PAGE = 4096, SPACE = 1 << 20, TABLE = 0x40000, PAYLOAD = 0x80000, ROOM = SPACE - PAYLOAD };
enum { DMA_SEND = 0x00, DMA_RECEIVE = 0x30 };                                      /* of AXI DMA: its two channels, */
enum { CONTROL = 0x00, STATUS = 0x04, ADDRESS = 0x18, ADDRESS_MSB = 0x1c, LENGTH = 0x28 }; /* and their registers */
enum { RUN = 1, RESET = 4, IDLE = 2, FAILED = 0x70 };

struct board {
    int uio;
    volatile uint32_t *registers, *dma;
    uint8_t *buffer;
    uint64_t address; /* of the buffer */
    uint32_t channel; /* of the DMA engine that is at work */
};

static uint32_t read_register(void *context, uint32_t offset) {
    struct board *b = context;
    return b->registers[offset / 4];
}

static void write_register(void *context, uint32_t offset, uint32_t word) {
    struct board *b = context;
    b->registers[offset / 4] = word;
}

static void *memory(void *context, uint64_t address, uint64_t size) {
    struct board *b = context;
    if (address < b->address || size > SPACE || address - b->address > SPACE - size) return NULL;
    return b->buffer + (address - b->address);
}

static void barrier(void *context, uint64_t address, uint64_t size) {
    (void)context, (void)address, (void)size;
#ifdef __aarch64__
    __asm__ volatile("dsb sy" ::: "memory"); /* also for what is outside of the processors' domain */
#else
    __sync_synchronize();
#endif
}

static int transfer(struct board *b, uint32_t channel, uint64_t address, uint64_t size) {
    volatile uint32_t *engine = b->dma + channel / 4;
    b->channel = channel;
    engine[CONTROL / 4] = RUN;
    engine[ADDRESS / 4] = (uint32_t)address;
    engine[ADDRESS_MSB / 4] = (uint32_t)(address >> 32);
    engine[LENGTH / 4] = (uint32_t)size; /* it starts with this */
    return (engine[STATUS / 4] & FAILED) != 0 || engine[LENGTH / 4] != (uint32_t)size; /* which has enough bits */
}

static int receive(void *context, uint64_t address, uint64_t room) {
    return transfer(context, DMA_RECEIVE, address, room);
}

static int send(void *context, uint64_t address, uint64_t size) {
    return transfer(context, DMA_SEND, address, size);
}

static int finish(void *context, int outcome) {
    struct board *b = context;
    volatile uint32_t *engine = b->dma + b->channel / 4;
    uint32_t status;
    if (outcome < 0 || ACTCODEC_REFUSED(outcome)) {
        int k;
        if (b->channel == DMA_SEND && ACTCODEC_REFUSED(outcome)) return 0; /* the frame waits */
        for (k = 0; b->channel == DMA_SEND && k < 1000 && !(engine[STATUS / 4] & (IDLE | FAILED)); k++)
            usleep(1000); /* the rest of a frame passes, and is dropped */
        engine[CONTROL / 4] = RESET; /* of both channels; of a frame that has not begun, a beat stays at s_axis */
        while (engine[CONTROL / 4] & RESET) {}
        return 0;
    }
    do status = engine[STATUS / 4];
    while (!(status & (IDLE | FAILED)));
    return (status & FAILED) != 0;
}

/* Waits for the interrupt, for a second at most. */
static int wait_for(void *context) {
    struct board *b = context;
    uint32_t one = 1, count;
    struct pollfd event = {.fd = b->uio, .events = POLLIN};
    if (write(b->uio, &one, sizeof one) != sizeof one) return 1; /* lets it through again */
    if (poll(&event, 1, 1000) <= 0) return 1;
    return read(b->uio, &count, sizeof count) != sizeof count;
}

static void copy(volatile void *to, const volatile void *from, size_t size) {
    volatile uint32_t *words = to;
    const volatile uint32_t *others = from;
    for (size /= 4; size--;) words[size] = others[size];
}

static void *map(int file, uint64_t address, size_t size) {
    void *place = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, (off_t)address);
    if (place == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    return place;
}

int main(int count, char **arguments) {
    static const struct actcodec_hooks hooks = {read_register, write_register, memory, barrier, barrier,
                                                receive, send, finish, wait_for};
    static const uint32_t shape[] = {1, 4, 32, 32};
    static float x[4 * 32 * 32], back[4 * 32 * 32];
    uint32_t words[4];
    struct board board = {0};
    struct actcodec device;
    struct actcodec_job job;
    int file, outcome;
    float worst = 0;
    size_t k;
    if (count != 3 && count != 4) {
        fprintf(stderr, "usage: %s /dev/uio0 BUFFER [DMA]\n", arguments[0]);
        return 2;
    }
    board.uio = open(arguments[1], O_RDWR);
    file = open("/dev/mem", O_RDWR | O_SYNC);
    if (board.uio < 0 || file < 0) {
        perror("open");
        return 1;
    }
    board.address = strtoull(arguments[2], NULL, 16);
    board.registers = map(board.uio, 0, PAGE);
    if (count == 4) board.dma = map(file, strtoull(arguments[3], NULL, 16), PAGE);
    board.buffer = map(file, board.address, SPACE);

    outcome = actcodec_probe(&device, &hooks, &board);
    if (!outcome) outcome = actcodec_plan(&device, &job, "sfpr-zvc", shape, 4);
    if (!outcome) {
        for (k = 0; k < sizeof x / sizeof *x; k++) x[k] = k % 3 ? 0 : (float)(k % 257) / 64;
        copy(board.buffer, x, sizeof x);
        job.address = board.address;
        job.scales = board.address + TABLE;
        job.payload = board.address + PAYLOAD;
        job.room = ROOM;
        job.resident = count == 3;
        job.words = words;
        outcome = actcodec_scales(&device, &job);
    }
    if (!outcome) outcome = actcodec_compress(&device, &job);
    if (!outcome) {
        printf("%zu bytes in %" PRIu64 ", %" PRIu64 " cycles\n", sizeof x, job.size, job.counters.cycles);
        copy(board.buffer, back, sizeof back); /* zeros */
        outcome = actcodec_decompress(&device, &job);
    }
    if (outcome) {
        fprintf(stderr, "actcodec: %s\n", actcodec_text(outcome));
        if (outcome == ACTCODEC_GAVE_UP) actcodec_reset(&device);
        return 1;
    }
    copy(back, board.buffer, sizeof back);
    for (k = 0; k < sizeof x / sizeof *x; k++) {
        float error = x[k] > back[k] ? x[k] - back[k] : back[k] - x[k];
        if (error > worst) worst = error;
    }
    printf("largest error %g\n", (double)worst);
    return 0;
}
