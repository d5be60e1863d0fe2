/* A ring of descriptors: many jobs for an accelerator with a queue, which has them done one after the other by itself.
 *
 * docs/c-driver.md shows how it is used, docs/integration.md has the ring in memory.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ACTCODEC_RING_H
#define ACTCODEC_RING_H

#include "actcodec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A ring: filled in by actcodec_ring_open, to be read. Numbers of jobs count on from the accelerator's, modulo 2^32. */
struct actcodec_ring {
    struct actcodec *device;
    struct actcodec_job **jobs; /* those in the ring, each in the place of its descriptor */
    uint8_t *descriptors;       /* as the processor sees them */
    uint64_t address;
    uint32_t size;
    uint32_t added, started, ended, collected; /* the next number to be so */
};

/* Opens a ring of `size` descriptors, a power of two, at most `device->queue`, at `address`: a multiple of
 * ACTCODEC_DESCRIPTOR_BYTES, of which each descriptor takes as many. `jobs` is room for `size` pointers; it, the memory
 * and `device` belong to the ring until another one is opened. With `stop_on_error`, a job that ends with an error of
 * the accelerator stops the ring. What was in a ring before, which has stopped, is forgotten. 0, ACTCODEC_NO_QUEUE,
 * ACTCODEC_BAD_RING, ACTCODEC_BUSY, ACTCODEC_NO_MEMORY. */
int actcodec_ring_open(struct actcodec_ring *ring, struct actcodec *device, uint64_t address, uint32_t size,
                       struct actcodec_job **jobs, int stop_on_error);

/* Adds a job to compress, or to decompress, as actcodec_compress and actcodec_decompress have it done; it does not begin
 * before actcodec_ring_start. Until it is collected, the job is the ring's, and its memory, apart from that of all
 * others, the accelerator's. A payload in the streams is moved without hooks: the caller has its DMA engine move a frame
 * for each such job that is not ACTCODEC_REFUSED, in the order of the ring, and drops what caches have of it. 0,
 * ACTCODEC_RING_FULL, or, as actcodec_compress returns them, ACTCODEC_NO_MODE, ACTCODEC_NO_MEMORY, ACTCODEC_NO_FORMAT,
 * ACTCODEC_NO_PAYLOAD, ACTCODEC_TOO_LARGE: the ring is as before. */
int actcodec_ring_compress(struct actcodec_ring *ring, struct actcodec_job *job);
int actcodec_ring_decompress(struct actcodec_ring *ring, struct actcodec_job *job);

/* Rings the doorbell: all jobs that were added may begin, at any time. The last of them raises the interrupt when it
 * ends, and so does any with an error. A ring that has stopped goes on, after a failure of its memory with the
 * descriptor that could not be read. */
void actcodec_ring_start(struct actcodec_ring *ring);

/* The oldest job, once it has ended, with all results filled in as far as its report has them: no stalls, and no
 * `saturated` and `nans` of what was compressed in a mode with streams. `outcome` is then 0, an error of the accelerator,
 * or ACTCODEC_NO_REPORT: it has ended in whatever way, as memory refused the report; `size` is 0 if it was compressed.
 *
 * Otherwise NULL, and `outcome` says why: ACTCODEC_RING_EMPTY, nothing that has been started is left; of what is left
 * nothing begins before actcodec_ring_start, ACTCODEC_RING_FAILED as memory has answered the ring with an error,
 * ACTCODEC_RING_STOPPED after an error or a reset; and, as the oldest has not ended yet, with actcodec_ring_poll 0. The
 * other one waits for it by the wait hook, and has ACTCODEC_GAVE_UP if that says so: to wait once more, or to be rid of
 * the job at work by actcodec_reset, which stops the ring and ends that job with ACTCODEC_ERROR_ABORTED. */
struct actcodec_job *actcodec_ring_poll(struct actcodec_ring *ring, int *outcome);
struct actcodec_job *actcodec_ring_collect(struct actcodec_ring *ring, int *outcome);

#ifdef __cplusplus
}
#endif

#endif
