/* Driver of actcodec's accelerator: C99, no allocation, no operating system, integers only except for COMET's book.
 *
 * It needs actcodec_registers.h and actcodec_modes.h, which `make registers` writes: they define registers, modes,
 * settings and error codes. docs/c-driver.md shows how to use it.
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

/* Functions return 0, a positive ACTCODEC_ERROR_... of the accelerator, or one of these. */
enum {
    ACTCODEC_NO_DEVICE = -1,     /* the magic number differs */
    ACTCODEC_WRONG_VERSION = -2, /* the major version differs */
    ACTCODEC_NO_MODE = -3,       /* there is no such mode, or it is not built in */
    ACTCODEC_BAD_SHAPE = -4,     /* not 2 to 5 dimensions of 1 or more, or more values than a descriptor can hold */
    ACTCODEC_NO_SETTING = -5,    /* the mode has no setting of that name, or the value does not fit it */
    ACTCODEC_NO_MEMORY = -6,     /* the memory hook returned NULL, or words are missing in a mode that scales */
    ACTCODEC_TOO_LARGE = -7,     /* a lane's stream could have 2^32 bytes */
    ACTCODEC_DMA_FAILED = -8,    /* a hook of the payload's DMA engine reported a failure */
    ACTCODEC_GAVE_UP = -9,       /* the wait hook gave up; actcodec_reset makes the accelerator usable again */
    ACTCODEC_NO_FORMAT = -10,    /* there is no such format of values, or it is not built in */
    ACTCODEC_NO_PAYLOAD = -11,   /* the accelerator has payloads only in the streams, or only in memory */
    ACTCODEC_BUSY = -12,         /* a job is running, or a ring of jobs */
    ACTCODEC_NO_QUEUE = -13,     /* the accelerator has no queue, so there is no ring */
    ACTCODEC_BAD_RING = -14,     /* a ring cannot have this size, or this address */
    ACTCODEC_RING_FULL = -15,    /* the oldest job has to be collected first */
    ACTCODEC_RING_EMPTY = -16,   /* all jobs that were started have been collected */
    ACTCODEC_RING_STOPPED = -17, /* actcodec_ring_start continues the ring, as after the next one */
    ACTCODEC_RING_FAILED = -18,  /* a memory access to a descriptor or a report failed */
    ACTCODEC_NO_REPORT = -19,    /* the job has ended, but its report could not be written */
    ACTCODEC_BAD_ADDRESS = -20,  /* tensor, scales or payload are not within the accelerator's addresses */
    ACTCODEC_NO_ENGINE = -21     /* the payload is not `resident`, and a hook of its DMA engine is NULL */
};

/* Whether the accelerator refused a tensor, before it read, wrote or accepted anything. */
#define ACTCODEC_REFUSED(outcome) ((outcome) == ACTCODEC_ERROR_DESCRIPTOR || (outcome) == ACTCODEC_ERROR_MODE \
                                   || (outcome) == ACTCODEC_ERROR_FORMAT)

#define ACTCODEC_SETTINGS_WORDS ((ACTCODEC_SETTINGS_BITS + 31) / 32)

/* What the driver needs of the system. `context` is that of actcodec_probe. Addresses are those of the accelerator, or
 * of the payload's DMA engine. */
struct actcodec_hooks {
    /* Accesses a register at a byte offset. Accesses must happen in the order of the calls. */
    uint32_t (*read)(void *context, uint32_t offset);
    void (*write)(void *context, uint32_t offset, uint32_t word);
    /* The processor's pointer to `size` bytes of memory at `address`, or NULL. Functions like memset work on it, as they
     * need not on memory that is mapped as a device's. */
    void *(*memory)(void *context, uint64_t address, uint64_t size);
    /* `clean` writes cached bytes back to memory, and must also wait until the accelerator sees the processor's writes;
     * `invalidate` drops cached bytes, and must also keep later reads of memory after it. NULL where caches are
     * coherent and accesses to memory are ordered with those to registers. */
    void (*clean)(void *context, uint64_t address, uint64_t size);
    void (*invalidate)(void *context, uint64_t address, uint64_t size);
    /* The payload's DMA engine; all three are NULL if payloads are in memory only.
     *
     * `receive` lets the engine store the next frame of m_axis, at most `room` bytes, at `address`; `send` lets it send
     * `size` bytes as a frame to s_axis. Both return at once: 0, or anything else for a failure. */
    int (*receive)(void *context, uint64_t address, uint64_t room);
    int (*send)(void *context, uint64_t address, uint64_t size);
    /* Waits until the engine is done; returns 0, or anything else for a failure, such as a frame that is too long.
     * `outcome` is the tensor's. If it is ACTCODEC_REFUSED, nothing has passed: a transfer from m_axis is cancelled; a
     * frame to s_axis waits, for the next tensor that is decompressed (docs/integration.md says how to discard it).
     * With ACTCODEC_GAVE_UP, which actcodec_reset calls when the accelerator is idle again, perhaps nothing has passed:
     * a transfer from m_axis is cancelled; a frame to s_axis that had begun is sent to its end, and dropped. */
    int (*finish)(void *context, int outcome);
    /* Called before each read of the status while a tensor is running: waits for the interrupt, or for some time.
     * Anything but 0 gives up. NULL: the status is polled. */
    int (*wait)(void *context);
};

/* An accelerator, filled in by actcodec_probe; read-only for the caller. */
struct actcodec {
    const struct actcodec_hooks *hooks;
    void *context;
    unsigned cdus;          /* lanes */
    unsigned address_width; /* bits of an address in memory */
    unsigned formats;       /* bit f: the format with code f, ACTCODEC_FORMAT_..., is built in */
    unsigned payloads;      /* where payloads can be: ACTCODEC_PAYLOAD_... */
    unsigned queue;         /* maximum number of descriptors in a ring, or 0: actcodec_ring.h */
    unsigned moving;        /* the DMA engine has a transfer that is not finished */
    uint64_t modes;         /* bit m: the mode with code m is built in */
};

/* A mode of the accelerator. */
struct actcodec_mode {
    const char *name;
    uint8_t code;
    uint8_t fallback;    /* code of the mode for tensors without tiles; its own if it needs none */
    uint8_t view;        /* ACTCODEC_VIEW_... */
    uint8_t flags;       /* ACTCODEC_SCALED, ACTCODEC_TILED, ACTCODEC_SHIFTS, ACTCODEC_STREAMS, ACTCODEC_WHOLE,
                          * ACTCODEC_CODES */
    uint8_t row;         /* bytes of a row of its blocks; in modes of DIVISION, bits of a code */
    uint8_t first, count; /* its settings: see actcodec_setting_of */
};

/* A setting: its bits in SETTINGS, and a value that works for any tensor, low byte first. */
struct actcodec_setting {
    const char *name;
    uint16_t low, width;
    uint8_t initial[ACTCODEC_SETTING_BYTES];
};

/* Counters of a tensor, as docs/registers.md describes them. */
struct actcodec_counters {
    uint64_t cycles, bytes_in, bytes_out, stall_read, stall_write, stall_stream, saturated, nans;
};

/* A tensor and its payload: actcodec_plan fills in what follows from mode and shape, the caller the addresses. After
 * compression it has everything that decompression needs. Where caches are not coherent, tensor (from its first to its
 * last byte, with what is between its rows), table and payload begin and end with whole lines of the cache. */
struct actcodec_job {
    const struct actcodec_mode *mode;
    uint32_t rows, width, stride, height, channels;
    uint64_t address;   /* of the tensor, a multiple of the size of a value */
    uint64_t scales;    /* of memory for the table of scales, in modes that scale: a multiple of 32 */
    uint32_t *words;    /* in modes that scale: a word per channel, k (and delta), in both directions */
    uint64_t payload;   /* address of the payload; with `resident`, a multiple of 32 */
    uint64_t room;      /* bytes available for it */
    uint64_t size;      /* its bytes: a result of compression, an input of decompression */
    uint8_t format;     /* of a value: actcodec_set_format */
    uint8_t resident;   /* the accelerator itself accesses the payload in memory, without the DMA engine */
    uint8_t signs;      /* when compressing in a mode that scales: no positive value becomes 0 */
    uint8_t clipped;    /* result: some values exceed the range of codes */
    uint8_t decompress; /* the direction that was requested last */
    uint8_t shifts[64]; /* log2 of each entry of the DQT, 0 to 7, in modes with shifts */
    uint32_t settings[ACTCODEC_SETTINGS_WORDS];
    uint32_t lengths[ACTCODEC_LANES]; /* in modes with streams: bytes of each lane's stream */
    struct actcodec_counters counters; /* result */
};

/* ---------------------------------------------------------------------------------------------------- the device */

/* Checks for an accelerator that this driver knows, reads its capabilities, and enables the interrupt of `done`.
 * `hooks` and `context` must outlive `device`. Returns 0, ACTCODEC_NO_DEVICE, ACTCODEC_WRONG_VERSION. */
int actcodec_probe(struct actcodec *device, const struct actcodec_hooks *hooks, void *context);

/* The mode with a name, or with a code; NULL if this driver does not know it. */
const struct actcodec_mode *actcodec_mode_named(const char *name);
const struct actcodec_mode *actcodec_mode_coded(unsigned code);

/* Whether the accelerator has a mode. */
int actcodec_has(const struct actcodec *device, const struct actcodec_mode *mode);

/* The setting of a mode with a name; NULL if there is none. */
const struct actcodec_setting *actcodec_setting_of(const struct actcodec_mode *mode, const char *name);

/* Text for the value that a function returned. */
const char *actcodec_text(int outcome);

/* Soft reset: aborts what is running, and returns when the accelerator is idle, as soon as memory has answered all
 * outstanding requests, and the DMA engine has accepted what ends its frame. Then that engine's transfer, if any, is
 * finished with ACTCODEC_GAVE_UP. A frame that waits at s_axis is left for the next tensor. */
void actcodec_reset(struct actcodec *device);

/* --------------------------------------------------------------------------------------------------------- a job */

/* Clears a job, and plans it for a mode and a contiguous tensor of `shape`, 2 to 5 dimensions as in NumPy: sets rows,
 * width, height and channels; the mode, or its fallback for tensors without tiles; settings and a DQT that work for
 * any tensor. Values are float32; the payload is in memory if it can be nowhere else. If rows are not contiguous, the
 * caller sets `stride`. Returns 0, ACTCODEC_NO_MODE, ACTCODEC_BAD_SHAPE. */
int actcodec_plan(const struct actcodec *device, struct actcodec_job *job, const char *mode, const uint32_t *shape,
                  unsigned dimensions);

/* Sets the format of a job's values, ACTCODEC_FORMAT_..., and makes its rows contiguous: a float16 or bfloat16 has
 * two bytes, an int8 one. int8 values are codes of SFPR, for modes with ACTCODEC_CODES, which then have no scales.
 * Returns 0, ACTCODEC_NO_FORMAT. */
int actcodec_set_format(const struct actcodec *device, struct actcodec_job *job, unsigned format);

/* Sets one of a job's settings: a number of up to 64 bits, or bytes, low byte first, as many as the setting's bits
 * need. Returns 0, ACTCODEC_NO_SETTING. The accelerator checks limits. */
int actcodec_set(struct actcodec_job *job, const char *name, uint64_t value);
int actcodec_set_bytes(struct actcodec_job *job, const char *name, const uint8_t *bytes);

/* Compresses a tensor: writes the table of scales from `words`, lets the DMA engine receive the payload, or the
 * accelerator write it, and fills in size, lengths, clipped and counters. Returns 0, an error of the accelerator,
 * ACTCODEC_BUSY, ACTCODEC_NO_MODE, ACTCODEC_NO_MEMORY, ACTCODEC_NO_FORMAT, ACTCODEC_NO_PAYLOAD, ACTCODEC_NO_ENGINE,
 * ACTCODEC_BAD_ADDRESS, ACTCODEC_TOO_LARGE, ACTCODEC_DMA_FAILED, ACTCODEC_GAVE_UP. With ACTCODEC_ERROR_OVERFLOW, `size` is the room that the payload needs. */
int actcodec_compress(struct actcodec *device, struct actcodec_job *job);

/* Decompresses `size` bytes of payload into the tensor, with the words, settings and lengths of its compression: the
 * table in memory gets the reciprocals of the words' k. Fills in counters; returns as actcodec_compress does. */
int actcodec_decompress(struct actcodec *device, struct actcodec_job *job);

/* Reads the histogram, 32 bins, of the last tensor, which must have been compressed in a mode with streams. Returns 0,
 * ACTCODEC_NO_MODE if no such mode is built in, ACTCODEC_BUSY. */
int actcodec_histogram(struct actcodec *device, uint32_t bins[32]);

/* --------------------------------------------------------------------------------------- computed by software */

/* The word k of a channel, a bfloat16, from the bits of the largest finite magnitude of its values, a float32. */
uint32_t actcodec_scale(uint32_t largest);

/* r = 1 / k, rounded to float32, of a word whose upper half is k; 0 if k is 0. */
uint32_t actcodec_reciprocal(uint32_t word);

/* Fills the words of a job with k of all channels, from the tensor in memory. Returns 0, ACTCODEC_NO_MEMORY. */
int actcodec_scales(struct actcodec *device, struct actcodec_job *job);

/* The same for the modes of DIVISION, with the job's settings `lfc` and `minimum`: the finest k with which no value
 * clips, and delta. Returns 0, ACTCODEC_NO_MEMORY, ACTCODEC_NO_MODE for any other mode. */
int actcodec_division(struct actcodec *device, struct actcodec_job *job);

/* COMET's setting `step` for an error bound: the largest step of 8 significant bits that keeps it; 0 for a bound below
 * 2^-126, which no step keeps. */
uint32_t actcodec_step(float bound);

/* Memory that actcodec_book needs. */
struct actcodec_scratch {
    double weights[256], merged[2][512], pool_sum[256];
    uint16_t pool_size[256];
    uint8_t single[8][512];
};

/* COMET's setting `counts`, 7 bytes, from the histogram of an earlier tensor: the book of least cost, where a byte of
 * an escape costs as much as 24 bits. */
void actcodec_book(const uint32_t bins[32], uint8_t counts[7], struct actcodec_scratch *scratch);

#ifdef __cplusplus
}
#endif

#endif
