/* Shared by the sources of the driver; not for its users.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ACTCODEC_INTERNAL_H
#define ACTCODEC_INTERNAL_H

#include "actcodec.h"
#include "actcodec_registers.h"

#define WORD(name) ((uint32_t)offsetof(actcodec_t, name))
#define FIELD(value, name) (((value) & name##_bm) >> name##_bp)
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

#define LANES 8 /* values of a sector */

/* Writes a register, or its word in a descriptor. */
typedef void (*actcodec_write)(void *context, uint32_t offset, uint32_t word);

/* Checks whether the accelerator can run a job; writes its table of scales, and its memory back from caches. */
int actcodec_prepare(const struct actcodec *device, const struct actcodec_job *job);

/* Writes everything that the accelerator needs to run a job. */
void actcodec_describe(const struct actcodec *device, const struct actcodec_job *job, actcodec_write write,
                       void *context);

/* Invalidates the cached memory that a job has written, `job->size` bytes of it if it is a payload. */
void actcodec_conclude(const struct actcodec *device, const struct actcodec_job *job);

/* Clears pending interrupts. */
void actcodec_clear_pending(const struct actcodec *device);

static inline uint32_t get(const struct actcodec *device, uint32_t offset) {
    return device->hooks->read(device->context, offset);
}

static inline void put(const struct actcodec *device, uint32_t offset, uint32_t word) {
    device->hooks->write(device->context, offset, word);
}

static inline void write_long(actcodec_write write, void *context, uint32_t offset, uint64_t value) {
    write(context, offset, (uint32_t)value);
    write(context, offset + 4, (uint32_t)(value >> 32));
}

static inline void clean(const struct actcodec *device, uint64_t address, uint64_t size) {
    if (device->hooks->clean) device->hooks->clean(device->context, address, size);
}

static inline void invalidate(const struct actcodec *device, uint64_t address, uint64_t size) {
    if (device->hooks->invalidate) device->hooks->invalidate(device->context, address, size);
}

static inline int at_work(const struct actcodec *device) {
    return (get(device, WORD(STATUS)) & ACTCODEC__STATUS__BUSY_bm) != 0;
}

/* Bytes of a value in memory. */
static inline unsigned value_bytes(const struct actcodec_job *job) {
    return job->format == ACTCODEC_FORMAT_FLOAT32 ? 4 : job->format == ACTCODEC_FORMAT_INT8 ? 1 : 2;
}

/* Bytes from the first to the last byte of a tensor. */
static inline uint64_t extent(const struct actcodec_job *job) {
    return (uint64_t)(job->rows - 1) * job->stride + (uint64_t)value_bytes(job) * job->width;
}

/* Words in memory are little-endian on any processor. */
static inline void store(uint8_t *place, uint32_t word) {
    unsigned k;
    for (k = 0; k < 4; k++) place[k] = (uint8_t)(word >> 8 * k);
}

static inline uint32_t load(const uint8_t *place) {
    return place[0] | (uint32_t)place[1] << 8 | (uint32_t)place[2] << 16 | (uint32_t)place[3] << 24;
}

#endif
