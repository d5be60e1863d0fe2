/* A ring of descriptors: jobs for an accelerator with a queue, which runs them one after another by itself.
 *
 * docs/c-driver.md shows how to use it, docs/integration.md has its layout in memory.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ACTCODEC_RING_H
#define ACTCODEC_RING_H

#include "actcodec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A ring, filled in by actcodec_ring_open; read-only for the caller. Jobs are numbered from the accelerator's count on,
 * modulo 2^32. */
struct actcodec_ring {
    struct actcodec *device;
    struct actcodec_job **jobs; /* those in the ring, at the index of their descriptor */
    uint8_t *descriptors;       /* the processor's pointer to them */
    uint64_t address;
    uint32_t size;
    uint32_t added, started, ended, collected; /* the number of the next job to be so */
};

/* Opens a ring of `size` descriptors, a power of two, at most `device->queue`, at `address`, a multiple of
 * ACTCODEC_DESCRIPTOR_BYTES, which is the size of a descriptor. `jobs` has room for `size` pointers; it, the memory and
 * `device` belong to the ring until another one is opened. With `stop_on_error`, a job that ends with an error of the
 * accelerator stops the ring. Jobs left in an earlier ring that has stopped are dropped. Returns 0, ACTCODEC_NO_QUEUE,
 * ACTCODEC_BAD_RING, ACTCODEC_BUSY, ACTCODEC_NO_MEMORY. */
int actcodec_ring_open(struct actcodec_ring *ring, struct actcodec *device, uint64_t address, uint32_t size,
                       struct actcodec_job **jobs, int stop_on_error);

/* Adds a job to compress, or to decompress, as actcodec_compress and actcodec_decompress do; it does not begin before
 * actcodec_ring_start. Until it is collected, the job belongs to the ring, and its memory, which must not overlap that
 * of other jobs, to the accelerator. A payload in the streams is moved without hooks: the caller lets its DMA engine
 * move a frame for each such job that is not ACTCODEC_REFUSED, in the order of the ring, and drops cached bytes of it.
 * Returns 0, ACTCODEC_RING_FULL, or, as actcodec_compress does, ACTCODEC_NO_MODE, ACTCODEC_NO_MEMORY,
 * ACTCODEC_NO_FORMAT, ACTCODEC_NO_PAYLOAD, ACTCODEC_BAD_ADDRESS, ACTCODEC_TOO_LARGE; unless it is 0, the ring is
 * unchanged. */
int actcodec_ring_compress(struct actcodec_ring *ring, struct actcodec_job *job);
int actcodec_ring_decompress(struct actcodec_ring *ring, struct actcodec_job *job);

/* Rings the doorbell: all jobs that were added may begin. May be called at any time. The last of them raises the
 * interrupt when it ends, and so does any with an error. A ring that has stopped continues, after a failed memory
 * access with the descriptor that could not be read. */
void actcodec_ring_start(struct actcodec_ring *ring);

/* Returns the oldest job, once it has ended, with the results that its report has: no stalls, and no `saturated` and
 * `nans` for compression in a mode with streams. `outcome` is then 0, an error of the accelerator, or
 * ACTCODEC_NO_REPORT: the job has ended, with or without an error, but its report could not be written; `size` is 0 if
 * it was compressed.
 *
 * Otherwise returns NULL, and `outcome` says why. ACTCODEC_RING_EMPTY: all started jobs have been collected.
 * ACTCODEC_RING_FAILED, after a failed memory access of the ring, and ACTCODEC_RING_STOPPED, after an error or a reset:
 * the other jobs do not begin before actcodec_ring_start. 0, from actcodec_ring_poll alone: the oldest job has not
 * ended yet. actcodec_ring_collect waits for it with the wait hook, and has ACTCODEC_GAVE_UP if that gives up: call it
 * again to wait on, or actcodec_reset, which stops the ring and ends the running job with ACTCODEC_ERROR_ABORTED. */
struct actcodec_job *actcodec_ring_poll(struct actcodec_ring *ring, int *outcome);
struct actcodec_job *actcodec_ring_collect(struct actcodec_ring *ring, int *outcome);

#ifdef __cplusplus
}
#endif

#endif
