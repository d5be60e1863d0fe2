/* A ring of descriptors; actcodec_ring.h says what each function does.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#include "actcodec_ring.h"

#include <string.h>

#include "actcodec_internal.h"

#define REPORT (ACTCODEC_DESCRIPTOR_BYTES - ACTCODEC_REPORT_BYTES) /* where it is in a descriptor */

/* Numbers of hardware are modulo twice the most that a ring can have. */
static uint32_t number_of(const struct actcodec_ring *ring, uint32_t count) {
    return count & (2 * ring->device->queue - 1);
}

/* The place of a number in the ring, and the bytes from its beginning to there. */
static uint32_t place_of(const struct actcodec_ring *ring, uint32_t count) {
    return count & (ring->size - 1);
}

static size_t offset_of(const struct actcodec_ring *ring, uint32_t count) {
    return (size_t)place_of(ring, count) * ACTCODEC_DESCRIPTOR_BYTES;
}

static uint64_t load_long(const uint8_t *place) {
    return (uint64_t)load(place + 4) << 32 | load(place);
}

/* As a register is written, in a descriptor. */
static void describe(void *descriptor, uint32_t offset, uint32_t word) {
    store((uint8_t *)descriptor + (offset - WORD(MODE)), word);
}

int actcodec_ring_open(struct actcodec_ring *ring, struct actcodec *device, uint64_t address, uint32_t size,
                       struct actcodec_job **jobs, int stop_on_error) {
    uint64_t bytes = (uint64_t)size * ACTCODEC_DESCRIPTOR_BYTES, last;
    if (!device->queue) return ACTCODEC_NO_QUEUE;
    last = UINT64_MAX >> (64 - device->address_width);
    if (!size || size & (size - 1) || size > device->queue) return ACTCODEC_BAD_RING;
    if (address % ACTCODEC_DESCRIPTOR_BYTES || address > last || bytes - 1 > last - address) return ACTCODEC_BAD_RING;
    if (at_work(device)) return ACTCODEC_BUSY;
    ring->descriptors = device->hooks->memory(device->context, address, bytes);
    if (!ring->descriptors) return ACTCODEC_NO_MEMORY;
    ring->device = device;
    ring->jobs = jobs;
    ring->address = address;
    ring->size = size;
    put(device, WORD(RING), (uint32_t)address);
    if (device->address_width > 32) put(device, WORD(RING) + 4, (uint32_t)(address >> 32));
    put(device, WORD(RING_SIZE), size << ACTCODEC__RING_SIZE__RING_SIZE_bp
        | (stop_on_error ? ACTCODEC__RING_SIZE__STOP_ON_ERROR_bm : 0));
    ring->collected = FIELD(get(device, WORD(TAIL)), ACTCODEC__TAIL__TAIL);
    ring->added = ring->started = ring->ended = ring->collected;
    return 0;
}

static int add(struct actcodec_ring *ring, struct actcodec_job *job, int decompress) {
    uint8_t *descriptor = ring->descriptors + offset_of(ring, ring->added);
    int outcome;
    if (ring->added - ring->collected == ring->size) return ACTCODEC_RING_FULL;
    job->decompress = (uint8_t)decompress;
    outcome = actcodec_prepare(ring->device, job);
    if (outcome) return outcome;
    memset(descriptor, 0, ACTCODEC_DESCRIPTOR_BYTES); /* that of the report, too */
    actcodec_describe(ring->device, job, describe, descriptor);
    ring->jobs[place_of(ring, ring->added++)] = job;
    return 0;
}

int actcodec_ring_compress(struct actcodec_ring *ring, struct actcodec_job *job) {
    return add(ring, job, 0);
}

int actcodec_ring_decompress(struct actcodec_ring *ring, struct actcodec_job *job) {
    return add(ring, job, 1);
}

void actcodec_ring_start(struct actcodec_ring *ring) {
    if (ring->started != ring->added) {
        uint8_t *mode = ring->descriptors + offset_of(ring, ring->added - 1); /* the first word */
        store(mode, load(mode) | ACTCODEC__MODE__NOTIFY_bm);
    }
    for (; ring->started != ring->added; ring->started++)
        clean(ring->device, ring->address + offset_of(ring, ring->started), ACTCODEC_DESCRIPTOR_BYTES);
    put(ring->device, WORD(HEAD), number_of(ring, ring->started) << ACTCODEC__HEAD__HEAD_bp);
}

/* Fills in what became of a job. */
static int conclude(struct actcodec_ring *ring, uint32_t count, struct actcodec_job *job) {
    static const struct actcodec_counters none;
    const uint8_t *report = ring->descriptors + offset_of(ring, count) + REPORT;
    uint32_t status;
    unsigned k;
    int reported;
    invalidate(ring->device, ring->address + offset_of(ring, count) + REPORT, ACTCODEC_REPORT_BYTES);
    status = load(report + ACTCODEC_REPORT_STATUS);
    reported = (status & ACTCODEC__STATUS__DONE_bm) != 0;
    job->counters = none;
    job->clipped = reported && status & ACTCODEC__STATUS__CLIPPED_bm;
    if (reported) {
        job->counters.cycles = load_long(report + ACTCODEC_REPORT_CYCLES);
        job->counters.bytes_in = load_long(report + ACTCODEC_REPORT_BYTES_IN);
        job->counters.bytes_out = load_long(report + ACTCODEC_REPORT_BYTES_OUT);
        if (job->decompress || !(job->mode->flags & ACTCODEC_STREAMS)) {
            job->counters.saturated = load_long(report + ACTCODEC_REPORT_SATURATED);
            job->counters.nans = load_long(report + ACTCODEC_REPORT_NANS);
        } else {
            for (k = 0; k < ring->device->cdus; k++)
                job->lengths[k] = load(report + ACTCODEC_REPORT_LENGTHS_OUT + 4 * (size_t)k);
        }
    }
    if (!job->decompress) job->size = job->counters.bytes_out;
    actcodec_conclude(ring->device, job);
    return reported ? (int)FIELD(status, ACTCODEC__STATUS__ERROR) : ACTCODEC_NO_REPORT;
}

struct actcodec_job *actcodec_ring_poll(struct actcodec_ring *ring, int *outcome) {
    struct actcodec_job *job;
    *outcome = 0;
    if (ring->collected == ring->ended) {
        int busy;
        uint32_t tail;
        actcodec_clear_pending(ring->device); /* what ends from here on is seen below, or raises it again */
        if (ring->collected == ring->started) {
            *outcome = ACTCODEC_RING_EMPTY;
            return NULL;
        }
        busy = at_work(ring->device); /* before it is known what has ended */
        tail = get(ring->device, WORD(TAIL));
        ring->ended += number_of(ring, FIELD(tail, ACTCODEC__TAIL__TAIL) - ring->ended);
        if (ring->collected == ring->ended) {
            if (tail & ACTCODEC__TAIL__STOPPED_bm && !busy)
                *outcome = tail & ACTCODEC__TAIL__RING_FAILED_bm ? ACTCODEC_RING_FAILED : ACTCODEC_RING_STOPPED;
            return NULL;
        }
    }
    job = ring->jobs[place_of(ring, ring->collected)];
    *outcome = conclude(ring, ring->collected++, job);
    return job;
}

struct actcodec_job *actcodec_ring_collect(struct actcodec_ring *ring, int *outcome) {
    const struct actcodec_hooks *hooks = ring->device->hooks;
    struct actcodec_job *job;
    while (!(job = actcodec_ring_poll(ring, outcome)) && !*outcome)
        if (hooks->wait && hooks->wait(ring->device->context)) {
            *outcome = ACTCODEC_GAVE_UP;
            break;
        }
    return job;
}
