/* Driver of actcodec's accelerator: C99, no allocation, no operating system, integers alone but for COMET's book.
 *
 * It is made with actcodec_registers.h and actcodec_modes.h, which `make registers` writes: what registers, modes,
 * settings and error codes there are comes from them. docs/c-driver.md shows how it is used.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef ACTCODEC_H
#define ACTCODEC_H

#include <stddef.h>
#include <stdint.h>

#include "actcodec_modes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What functions return: 0, a positive ACTCODEC_ERROR_... of the accelerator, or one of these. */
enum {
    ACTCODEC_NO_DEVICE = -1,     /* the magic number is another one */
    ACTCODEC_WRONG_VERSION = -2, /* so is the major version */
    ACTCODEC_NO_MODE = -3,       /* there is no such mode, or it is not built in */
    ACTCODEC_BAD_SHAPE = -4,     /* not 2 to 5 dimensions of 1 or more, or more values than a descriptor can have */
    ACTCODEC_NO_SETTING = -5,    /* the mode has no setting of that name, or not of so many bits */
    ACTCODEC_NO_MEMORY = -6,     /* the memory hook has no such bytes, or words are missing in a mode that scales */
    ACTCODEC_TOO_LARGE = -7,     /* a lane's stream could have 2^32 bytes */
    ACTCODEC_DMA_FAILED = -8,    /* a hook of the payload's DMA says so */
    ACTCODEC_GAVE_UP = -9,       /* the wait hook says so; actcodec_reset makes the accelerator usable again */
    ACTCODEC_NO_FORMAT = -10,    /* there is no such format of values, or it is not built in */
    ACTCODEC_NO_PAYLOAD = -11,   /* payloads of the accelerator are in the streams only, or in memory only */
    ACTCODEC_BUSY = -12,         /* a job is at work, or a ring of jobs */
    ACTCODEC_NO_QUEUE = -13,     /* the accelerator has no queue, so there is no ring */
    ACTCODEC_BAD_RING = -14,     /* a ring cannot have this size, or this address */
    ACTCODEC_RING_FULL = -15,    /* the oldest job has to be collected first */
    ACTCODEC_RING_EMPTY = -16,   /* all jobs that were started have been collected */
    ACTCODEC_RING_STOPPED = -17, /* actcodec_ring_start has it go on; after this one, too: */
    ACTCODEC_RING_FAILED = -18,  /* memory has answered with an error to a descriptor or a report */
    ACTCODEC_NO_REPORT = -19     /* the job has ended, and memory has no report of it */
};

/* Whether the accelerator has refused a tensor, before it has read, written or taken anything. */
#define ACTCODEC_REFUSED(outcome) ((outcome) == ACTCODEC_ERROR_DESCRIPTOR || (outcome) == ACTCODEC_ERROR_MODE \
                                   || (outcome) == ACTCODEC_ERROR_FORMAT)

#define ACTCODEC_SETTINGS_WORDS ((ACTCODEC_SETTINGS_BITS + 31) / 32)

/* What the driver asks of the system. `context` is that of actcodec_probe. Addresses are those that the accelerator,
 * or the DMA engine of the payload, uses. */
struct actcodec_hooks {
    /* A register at a byte offset. Accesses have to happen in the order of the calls. */
    uint32_t (*read)(void *context, uint32_t offset);
    void (*write)(void *context, uint32_t offset, uint32_t word);
    /* Where the processor finds `size` bytes of memory, or NULL. */
    void *(*memory)(void *context, uint64_t address, uint64_t size);
    /* Writes cached bytes back to memory; drops cached bytes. `clean` also has to wait until the processor's writes are
     * seen by the accelerator, and `invalidate` to keep reads of memory behind it. NULL where caches are coherent and
     * accesses to memory keep their order with those to registers. */
    void (*clean)(void *context, uint64_t address, uint64_t size);
    void (*invalidate)(void *context, uint64_t address, uint64_t size);
    /* Of the payload's DMA engine, all three NULL where payloads are in memory only.
     *
     * Has the engine store the next frame of m_axis at `address`, of at most `room` bytes; has it send `size` bytes
     * as a frame to s_axis. Both return at once: 0, or anything else for a failure. */
    int (*receive)(void *context, uint64_t address, uint64_t room);
    int (*send)(void *context, uint64_t address, uint64_t size);
    /* Waits until the engine is done; 0, or anything else for a failure, as for a frame that was too long. `outcome` is
     * the tensor's: if it is ACTCODEC_REFUSED nothing has passed, with ACTCODEC_GAVE_UP maybe nothing, and the transfer
     * is to be cancelled. */
    int (*finish)(void *context, int outcome);
    /* Called before each look at the status while a tensor is under way: waits for the interrupt, or for a while.
     * Anything but 0 gives up. NULL: the status is read all the time. */
    int (*wait)(void *context);
};

/* An accelerator: filled in by actcodec_probe, to be read. */
struct actcodec {
    const struct actcodec_hooks *hooks;
    void *context;
    unsigned cdus;          /* lanes */
    unsigned address_width; /* bits of an address in memory */
    unsigned formats;       /* bit f: the format with code f, ACTCODEC_FORMAT_..., is built in */
    unsigned payloads;      /* where payloads pass: ACTCODEC_PAYLOAD_... */
    unsigned queue;         /* descriptors that a ring can have at most, or 0: actcodec_ring.h */
    uint64_t modes;         /* bit m: the mode with code m is built in */
};

/* A mode of the accelerator. */
struct actcodec_mode {
    const char *name;
    uint8_t code;
    uint8_t fallback;    /* code of the mode of tensors that have no tiles; its own where none is needed */
    uint8_t view;        /* ACTCODEC_VIEW_... */
    uint8_t flags;       /* ACTCODEC_SCALED, ACTCODEC_TILED, ACTCODEC_SHIFTS, ACTCODEC_STREAMS, ACTCODEC_WHOLE,
                          * ACTCODEC_CODES */
    uint8_t row;         /* bytes of a row of its blocks; in the modes of DIVISION bits of a code */
    uint8_t first, count; /* its settings: see actcodec_setting_of */
};

/* A setting: bits of SETTINGS, and a number that works for any tensor, low byte first. */
struct actcodec_setting {
    const char *name;
    uint16_t low, width;
    uint8_t initial[ACTCODEC_SETTING_BYTES];
};

/* Counters of a tensor, as docs/registers.md describes them. */
struct actcodec_counters {
    uint64_t cycles, bytes_in, bytes_out, stall_read, stall_write, stall_stream, saturated, nans;
};

/* A tensor, and its payload: actcodec_plan fills in what follows from mode and shape, the caller the places. After
 * compression it has all that decompression needs. */
struct actcodec_job {
    const struct actcodec_mode *mode;
    uint32_t rows, width, stride, height, channels;
    uint64_t address;   /* of the tensor, a multiple of the bytes of a value */
    uint64_t scales;    /* of room for the accelerator's table of scales, in modes that scale: a multiple of 32 */
    uint32_t *words;    /* in modes that scale: a word of each channel, k (and delta), in both directions */
    uint64_t payload;   /* where the payload is; with `resident` a multiple of 32 */
    uint64_t room;      /* bytes that there are for it */
    uint64_t size;      /* its bytes: of compression the result, of decompression what is sent */
    uint8_t format;     /* of a value: actcodec_set_format */
    uint8_t resident;   /* the accelerator has the payload in memory by itself, without the DMA engine's help */
    uint8_t signs;      /* compressing in a mode that scales: no positive value becomes 0 */
    uint8_t clipped;    /* result: codes could not reach all values */
    uint8_t decompress; /* the direction, as it was asked for last */
    uint8_t shifts[64]; /* log2 of each entry of the DQT, 0 to 7, in modes with shifts */
    uint32_t settings[ACTCODEC_SETTINGS_WORDS];
    uint32_t lengths[ACTCODEC_LANES]; /* in modes with streams: bytes of the stream of each lane */
    struct actcodec_counters counters; /* result */
};

/* ---------------------------------------------------------------------------------------------------- the device */

/* Looks whether there is an accelerator that this driver knows, and what it can do; has `done` raise the interrupt.
 * `hooks` and `context` have to outlive `device`. 0, ACTCODEC_NO_DEVICE, ACTCODEC_WRONG_VERSION. */
int actcodec_probe(struct actcodec *device, const struct actcodec_hooks *hooks, void *context);

/* The mode of that name, or of that code; NULL if this driver does not know it. */
const struct actcodec_mode *actcodec_mode_named(const char *name);
const struct actcodec_mode *actcodec_mode_coded(unsigned code);

/* Whether the accelerator has a mode. */
int actcodec_has(const struct actcodec *device, const struct actcodec_mode *mode);

/* A mode's setting of that name; NULL if it has none. */
const struct actcodec_setting *actcodec_setting_of(const struct actcodec_mode *mode, const char *name);

/* Half a sentence for what a function returned. */
const char *actcodec_text(int outcome);

/* Soft reset: gives up whatever is under way, and returns when the accelerator is at rest, as soon as memory has
 * answered all that was asked of it. A frame that waits at s_axis is left for the next tensor. */
void actcodec_reset(struct actcodec *device);

/* --------------------------------------------------------------------------------------------------------- a job */

/* Clears a job, and plans it for a mode and a contiguous tensor of `shape`, 2 to 5 dimensions as in NumPy: rows, width,
 * height and channels; the mode that it falls back to where there are no tiles; settings and DQT that work for any
 * tensor. Values are float32; the payload is in memory if it can only be there. With rows further apart, the caller sets
 * `stride`. 0, ACTCODEC_NO_MODE, ACTCODEC_BAD_SHAPE. */
int actcodec_plan(const struct actcodec *device, struct actcodec_job *job, const char *mode, const uint32_t *shape,
                  unsigned dimensions);

/* Has a job's values in another format, ACTCODEC_FORMAT_..., and its rows contiguous: a float16 or bfloat16 has two
 * bytes, an int8 one. int8 are codes of SFPR, for modes with ACTCODEC_CODES, which then have no scales. 0,
 * ACTCODEC_NO_FORMAT. */
int actcodec_set_format(const struct actcodec *device, struct actcodec_job *job, unsigned format);

/* Sets one of a job's settings: a number of up to 64 bits, or bytes, low byte first, as many as the setting's bits need.
 * 0, ACTCODEC_NO_SETTING. The accelerator checks limits. */
int actcodec_set(struct actcodec_job *job, const char *name, uint64_t value);
int actcodec_set_bytes(struct actcodec_job *job, const char *name, const uint8_t *bytes);

/* Compresses a tensor: writes the table of scales from `words`, lets the DMA engine receive the payload, or the
 * accelerator write it, and fills in size, lengths, clipped and counters. Returns 0, an error of the accelerator,
 * ACTCODEC_BUSY, ACTCODEC_NO_MODE, ACTCODEC_NO_MEMORY, ACTCODEC_NO_FORMAT, ACTCODEC_NO_PAYLOAD, ACTCODEC_TOO_LARGE,
 * ACTCODEC_DMA_FAILED, ACTCODEC_GAVE_UP. With ACTCODEC_ERROR_OVERFLOW, `size` is the room that it takes. */
int actcodec_compress(struct actcodec *device, struct actcodec_job *job);

/* Decompresses `size` bytes of payload into the tensor, with the words, settings and lengths of its compression: the
 * table in memory gets the reciprocals of the words' k. Fills in counters; returns as actcodec_compress does. */
int actcodec_decompress(struct actcodec *device, struct actcodec_job *job);

/* What the codec counted in the 32 bins of the last tensor, which was compressed in a mode with streams. */
void actcodec_histogram(struct actcodec *device, uint32_t bins[32]);

/* --------------------------------------------------------------------------------------- what software works out */

/* The word k of a channel, a bfloat16, by the bits of the largest finite magnitude of its values, a float32. */
uint32_t actcodec_scale(uint32_t largest);

/* r = 1 / k, rounded to a float32, of a word whose upper half is k; 0 of 0. */
uint32_t actcodec_reciprocal(uint32_t word);

/* Fills the words of a job with k of all channels, from the tensor in memory. 0, ACTCODEC_NO_MEMORY. */
int actcodec_scales(struct actcodec *device, struct actcodec_job *job);

/* The same for the modes of DIVISION, with their setting `lfc` and `minimum` as the job has them: the finest k with
 * which no value clips, and delta. 0, ACTCODEC_NO_MEMORY, ACTCODEC_NO_MODE for any other mode. */
int actcodec_division(struct actcodec *device, struct actcodec_job *job);

/* COMET's setting `step` for an error bound: that of the largest step of 8 significant bits that keeps it; 0 for a bound
 * below 2^-126, which no step keeps. */
uint32_t actcodec_step(float bound);

/* Memory that actcodec_book needs. */
struct actcodec_scratch {
    double weights[256], merged[2][512], pool_sum[256];
    uint16_t pool_size[256];
    uint8_t single[8][512];
};

/* COMET's setting `counts`, 7 bytes, from the histogram of an earlier tensor: the book of least cost, where the byte of
 * an escape costs as much as 24 bits. */
void actcodec_book(const uint32_t bins[32], uint8_t counts[7], struct actcodec_scratch *scratch);

#ifdef __cplusplus
}
#endif

#endif
