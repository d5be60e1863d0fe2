/* Driver of actcodec's accelerator; actcodec.h says what each function does.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "actcodec_internal.h"

#define PER_WORD 8    /* entries of TABLE in a word */
#define MOST_BYTES 8  /* that a value takes in a stream */
#define LINE 32       /* bytes that the table of scales is read by */

static const struct actcodec_mode modes[] = {ACTCODEC_MODE_LIST};
static const struct actcodec_setting settings[] = {ACTCODEC_SETTING_LIST};
static const char *const errors[] = {ACTCODEC_ERROR_LIST};
static const uint8_t shifts[64] = {ACTCODEC_SHIFT_LIST};

/* ---------------------------------------------------------------------------------------------------- the device */

static uint64_t get_long(const struct actcodec *device, uint32_t offset) {
    uint64_t low = get(device, offset);
    return (uint64_t)get(device, offset + 4) << 32 | low;
}

void actcodec_clear_pending(const struct actcodec *device) {
    put(device, WORD(INTERRUPT_STATUS),
        ACTCODEC__INTERRUPT_STATUS__DONE_PENDING_bm | ACTCODEC__INTERRUPT_STATUS__ERROR_PENDING_bm);
}

int actcodec_probe(struct actcodec *device, const struct actcodec_hooks *hooks, void *context) {
    uint32_t word;
    device->hooks = hooks;
    device->context = context;
    device->cdus = device->address_width = device->payloads = device->queue = device->moving = 0;
    device->formats = 1;
    device->modes = 0;
    if (get(device, WORD(MAGIC)) != ACTCODEC__MAGIC__MAGIC_reset) return ACTCODEC_NO_DEVICE;
    word = get(device, WORD(VERSION));
    if (FIELD(word, ACTCODEC__VERSION__MAJOR) != ACTCODEC__VERSION__MAJOR_reset) return ACTCODEC_WRONG_VERSION;
    word = get(device, WORD(CAPABILITIES));
    device->cdus = FIELD(word, ACTCODEC__CAPABILITIES__CDUS);
    device->address_width = FIELD(word, ACTCODEC__CAPABILITIES__ADDRESS_WIDTH);
    device->formats = 1 | FIELD(word, ACTCODEC__CAPABILITIES__FORMATS) << 1;
    device->payloads = FIELD(word, ACTCODEC__CAPABILITIES__PAYLOADS);
    device->queue = FIELD(word, ACTCODEC__CAPABILITIES__QUEUES);
    if (device->queue) device->queue = 1u << device->queue;
    device->modes = get_long(device, WORD(MODES0));
    put(device, WORD(INTERRUPT_ENABLE), ACTCODEC__INTERRUPT_ENABLE__DONE_ENABLE_bm);
    return 0;
}

const struct actcodec_mode *actcodec_mode_named(const char *name) {
    size_t k;
    for (k = 0; k < COUNT(modes); k++)
        if (!strcmp(modes[k].name, name)) return &modes[k];
    return NULL;
}

const struct actcodec_mode *actcodec_mode_coded(unsigned code) {
    size_t k;
    for (k = 0; k < COUNT(modes); k++)
        if (modes[k].code == code) return &modes[k];
    return NULL;
}

int actcodec_has(const struct actcodec *device, const struct actcodec_mode *mode) {
    return (int)(device->modes >> mode->code & 1);
}

const struct actcodec_setting *actcodec_setting_of(const struct actcodec_mode *mode, const char *name) {
    unsigned k;
    for (k = 0; k < mode->count; k++)
        if (!strcmp(settings[mode->first + k].name, name)) return &settings[mode->first + k];
    return NULL;
}

const char *actcodec_text(int outcome) {
    static const char *const own[] = {
        "no accelerator was detected", "the registers have another major version", "the mode is not built in",
        "the shape is not supported", "the mode has no such setting", "the memory is not accessible",
        "a lane's stream could be too long", "the payload's DMA failed", "the wait was given up",
        "the format of values is not built in", "the payload cannot be in this place",
        "the accelerator is busy", "the accelerator has no queue", "a ring cannot have this size or address",
        "the ring is full", "the ring has no started jobs", "the ring has stopped",
        "a memory access of the ring failed", "the job has no report in memory",
        "an address is beyond those of the accelerator", "a DMA engine's hook is missing"};
    if (outcome >= 0 && (size_t)outcome < COUNT(errors)) return errors[outcome];
    if (outcome < 0 && (size_t)(-1 - outcome) < COUNT(own)) return own[-1 - outcome];
    return "an error that this driver does not know";
}

void actcodec_reset(struct actcodec *device) {
    put(device, WORD(CONTROL), ACTCODEC__CONTROL__RESET_bm);
    while (at_work(device)) {} /* the engine accepts what ends a frame, and the rest of one to it is dropped */
    if (device->moving) device->hooks->finish(device->context, ACTCODEC_GAVE_UP);
    device->moving = 0;
    actcodec_clear_pending(device);
}

/* --------------------------------------------------------------------------------------------------------- a job */

/* Whether there is a table of scales: codes have passed SFPR elsewhere. */
static int scaled(const struct actcodec_job *job) {
    return job->mode->flags & ACTCODEC_SCALED && job->format != ACTCODEC_FORMAT_INT8;
}

static void view(struct actcodec_job *job, uint64_t rows, uint64_t width, uint64_t height, uint64_t channels) {
    /* What is too large becomes what the accelerator refuses. */
    job->rows = rows > UINT32_MAX ? 0 : (uint32_t)rows;
    job->width = width > UINT32_MAX / 4 ? 0 : (uint32_t)width;
    job->height = height > UINT32_MAX ? 0 : (uint32_t)height;
    job->channels = channels > UINT32_MAX ? 0 : (uint32_t)channels;
    job->stride = value_bytes(job) * job->width;
}

/* Sees a tensor of n samples, c channels, h rows and w values in a row as the job's mode does; whether it has tiles. */
static int see(struct actcodec_job *job, uint64_t n, uint64_t c, uint64_t h, uint64_t w) {
    switch (job->mode->view) {
    case ACTCODEC_VIEW_FLAT:
        if (n * c * h * w % LANES == 0) view(job, n * c * h * w / LANES, LANES, 1, 1);
        else view(job, 1, n * c * h * w, 1, 1);
        return 0;
    case ACTCODEC_VIEW_PLANES:
        if (w >= LANES && h % LANES == 0) {
            view(job, n * c * h, w, h, n * c);
            return 1;
        }
        if (h * w > LANES) view(job, n * c, h * w, 1, n * c);
        else if (c * h * w > LANES) view(job, n, c * h * w, 1, n);
        else view(job, 1, n * c * h * w, 1, 1);
        return 0;
    default:
        if (w >= LANES) view(job, n * c * h, w, h, c);
        else if (h * w >= LANES) view(job, n * c, h * w, 1, c);
        else view(job, n, c * h * w, 1, 1);
        return w >= LANES && n * c * h >= LANES;
    }
}

int actcodec_plan(const struct actcodec *device, struct actcodec_job *job, const char *mode, const uint32_t *shape,
                  unsigned dimensions) {
    static const struct actcodec_job none;
    uint64_t n, c, h, w, size = 1;
    unsigned k;
    *job = none;
    job->mode = actcodec_mode_named(mode);
    if (!job->mode) return ACTCODEC_NO_MODE;
    if (dimensions < 2 || dimensions > 5) return ACTCODEC_BAD_SHAPE;
    for (k = 0; k < dimensions; k++) {
        if (!shape[k] || size > (UINT64_C(1) << 60) / shape[k]) return ACTCODEC_BAD_SHAPE;
        size *= shape[k];
    }
    n = shape[0], c = shape[1], h = w = 1;
    for (k = 2; k < dimensions; k++) {
        h *= w;
        w = shape[k];
    }
    for (;;) {
        int tiles;
        if (job->mode->view == ACTCODEC_VIEW_PLANES && dimensions == 2) tiles = see(job, n, 1, 1, c);
        else tiles = see(job, n, c, h, w);
        if (tiles || !(job->mode->flags & ACTCODEC_TILED)) break;
        if (job->mode->fallback == job->mode->code) return ACTCODEC_BAD_SHAPE;
        job->mode = actcodec_mode_coded(job->mode->fallback);
    }
    if (!actcodec_has(device, job->mode)) return ACTCODEC_NO_MODE;
    if (!job->rows || !job->width || !job->height || !job->channels) return ACTCODEC_BAD_SHAPE;
    for (k = 0; k < job->mode->count; k++)
        actcodec_set_bytes(job, settings[job->mode->first + k].name, settings[job->mode->first + k].initial);
    memcpy(job->shifts, shifts, sizeof shifts);
    job->resident = device->payloads == ACTCODEC_PAYLOAD_MEMORY;
    return 0;
}

int actcodec_set_format(const struct actcodec *device, struct actcodec_job *job, unsigned format) {
    if (format >= ACTCODEC_FORMATS || !(device->formats >> format & 1)) return ACTCODEC_NO_FORMAT;
    if (format == ACTCODEC_FORMAT_INT8 && !(job->mode->flags & ACTCODEC_CODES)) return ACTCODEC_NO_FORMAT;
    job->format = (uint8_t)format;
    job->stride = value_bytes(job) * job->width;
    return 0;
}

int actcodec_set_bytes(struct actcodec_job *job, const char *name, const uint8_t *bytes) {
    const struct actcodec_setting *setting = actcodec_setting_of(job->mode, name);
    unsigned k;
    if (!setting) return ACTCODEC_NO_SETTING;
    for (k = setting->width; k < (setting->width + 7u) / 8 * 8; k++)
        if (bytes[k / 8] >> k % 8 & 1) return ACTCODEC_NO_SETTING;
    for (k = 0; k < setting->width; k++) {
        unsigned bit = setting->low + k;
        job->settings[bit / 32] &= ~(UINT32_C(1) << bit % 32);
        job->settings[bit / 32] |= (uint32_t)(bytes[k / 8] >> k % 8 & 1) << bit % 32;
    }
    return 0;
}

int actcodec_set(struct actcodec_job *job, const char *name, uint64_t value) {
    uint8_t bytes[ACTCODEC_SETTING_BYTES] = {0};
    const struct actcodec_setting *setting = actcodec_setting_of(job->mode, name);
    unsigned k;
    if (!setting || (setting->width < 64 && value >> setting->width)) return ACTCODEC_NO_SETTING;
    for (k = 0; k < 8 && k < sizeof bytes; k++) bytes[k] = (uint8_t)(value >> 8 * k);
    return actcodec_set_bytes(job, name, bytes);
}

static int write_scales(const struct actcodec *device, const struct actcodec_job *job) {
    uint64_t size = UINT64_C(4) * job->channels;
    uint8_t *table;
    uint32_t k;
    if (!scaled(job)) return 0;
    table = job->words ? device->hooks->memory(device->context, job->scales, size) : NULL;
    if (!table) return ACTCODEC_NO_MEMORY;
    for (k = 0; k < job->channels; k++)
        store(table + 4 * (size_t)k, job->decompress ? actcodec_reciprocal(job->words[k]) : job->words[k]);
    clean(device, job->scales, (size + LINE - 1) / LINE * LINE);
    return 0;
}

/* Whether the stream of the lane that has most could be too long. */
static int too_large(const struct actcodec *device, const struct actcodec_job *job) {
    uint64_t sectors = (job->width + LANES - 1u) / LANES, rows = job->rows, blocks, share;
    if (!(job->mode->flags & ACTCODEC_STREAMS)) return 0;
    blocks = job->mode->flags & ACTCODEC_TILED ? (rows + 7) / 8 * sectors : (rows * sectors + 7) / 8;
    share = (blocks + 4 * device->cdus - 1) / (4 * device->cdus) * 256;
    return share >= (UINT64_C(1) << 32) / MOST_BYTES;
}

/* Whether bytes are beyond the accelerator's addresses: it would ignore a word of registers with such bits. */
static int beyond(const struct actcodec *device, uint64_t address, uint64_t size) {
    uint64_t last = UINT64_MAX >> (64 - device->address_width);
    return address > last || (size && size - 1 > last - address);
}

int actcodec_prepare(const struct actcodec *device, const struct actcodec_job *job) {
    uint64_t size = job->decompress ? job->size : job->room;
    int outcome;
    if (!actcodec_has(device, job->mode)) return ACTCODEC_NO_MODE;
    if (!(device->formats >> job->format & 1)) return ACTCODEC_NO_FORMAT;
    if (device->payloads == (job->resident ? ACTCODEC_PAYLOAD_STREAM : ACTCODEC_PAYLOAD_MEMORY))
        return ACTCODEC_NO_PAYLOAD;
    if (beyond(device, job->address, extent(job))
        || (scaled(job) && beyond(device, job->scales, UINT64_C(4) * job->channels))
        || (job->resident && (beyond(device, job->payload, 1) || beyond(device, size, 1))))
        return ACTCODEC_BAD_ADDRESS;
    if (too_large(device, job)) return ACTCODEC_TOO_LARGE;
    outcome = write_scales(device, job);
    if (outcome) return outcome;
    clean(device, job->address, extent(job));
    clean(device, job->payload, size);
    return 0;
}

/* Only the words whose bits exist: other devices of this version refuse an upper one. */
static void write_address(const struct actcodec *device, actcodec_write write, void *context, uint32_t offset,
                          uint64_t value) {
    if (device->address_width > 32) write_long(write, context, offset, value);
    else write(context, offset, (uint32_t)value);
}

void actcodec_describe(const struct actcodec *device, const struct actcodec_job *job, actcodec_write write,
                       void *context) {
    unsigned k, words = 0, used = 0;
    write(context, WORD(MODE), (uint32_t)job->mode->code << ACTCODEC__MODE__MODE_bp
          | (job->decompress ? ACTCODEC__MODE__DECOMPRESS_bm : job->signs ? ACTCODEC__MODE__SIGNS_bm : 0)
          | (uint32_t)job->format << ACTCODEC__MODE__FORMAT_bp
          | (job->resident && device->payloads == ACTCODEC_PAYLOAD_BOTH ? ACTCODEC__MODE__PAYLOAD_MEMORY_bm : 0));
    write(context, WORD(ROWS), job->rows);
    write(context, WORD(WIDTH), job->width);
    write(context, WORD(STRIDE), job->stride);
    write(context, WORD(HEIGHT), job->height);
    write(context, WORD(CHANNELS), job->channels);
    write_address(device, write, context, WORD(BASE), job->address);
    if (scaled(job)) write_address(device, write, context, WORD(SCALES), job->scales);
    if (job->resident) {
        write_address(device, write, context, WORD(PAYLOAD), job->payload);
        write_address(device, write, context, WORD(PAYLOAD_SIZE), job->decompress ? job->size : job->room);
    }
    if (job->mode->flags & ACTCODEC_SHIFTS)
        for (k = 0; k < 64; k += PER_WORD) {
            unsigned entry;
            uint32_t word = 0;
            for (entry = 0; entry < PER_WORD; entry++)
                word |= (uint32_t)(job->shifts[k + entry] & 7)
                        << entry * (ACTCODEC__TABLE__TABLE1_bp - ACTCODEC__TABLE__TABLE0_bp);
            write(context, WORD(TABLE) + 4 * k / PER_WORD, word);
        }
    for (k = 0; k < job->mode->count; k++) {
        const struct actcodec_setting *one = &settings[job->mode->first + k];
        used = (one->low + one->width + 31u) / 32;
        if (used > words) words = used;
    }
    for (k = 0; k < words; k++) write(context, WORD(SETTINGS) + 4 * k, job->settings[k]);
    if (job->decompress && job->mode->flags & ACTCODEC_STREAMS)
        for (k = 0; k < device->cdus; k++) write(context, WORD(LENGTHS_IN) + 4 * k, job->lengths[k]);
}

void actcodec_conclude(const struct actcodec *device, const struct actcodec_job *job) {
    if (job->decompress) invalidate(device, job->address, extent(job));
    else invalidate(device, job->payload, job->size < job->room ? job->size : job->room);
}

static void read_results(const struct actcodec *device, struct actcodec_job *job) {
    struct actcodec_counters *counters = &job->counters;
    unsigned k;
    counters->cycles = get_long(device, WORD(CYCLES));
    counters->bytes_in = get_long(device, WORD(BYTES_IN));
    counters->bytes_out = get_long(device, WORD(BYTES_OUT));
    counters->stall_read = get_long(device, WORD(STALL_READ));
    counters->stall_write = get_long(device, WORD(STALL_WRITE));
    counters->stall_stream = get_long(device, WORD(STALL_STREAM));
    counters->saturated = get_long(device, WORD(SATURATED));
    counters->nans = get_long(device, WORD(NANS));
    if (job->decompress) return;
    job->size = counters->bytes_out;
    if (job->mode->flags & ACTCODEC_STREAMS)
        for (k = 0; k < device->cdus; k++) job->lengths[k] = get(device, WORD(LENGTHS_OUT) + 4 * k);
}

static int run(struct actcodec *device, struct actcodec_job *job, int decompress) {
    const struct actcodec_hooks *hooks = device->hooks;
    uint32_t status = 0;
    int outcome, failed = 0;
    if (at_work(device)) return ACTCODEC_BUSY;
    if (!job->resident && !(hooks->finish && (decompress ? hooks->send != NULL : hooks->receive != NULL)))
        return ACTCODEC_NO_ENGINE;
    job->decompress = (uint8_t)decompress;
    outcome = actcodec_prepare(device, job);
    if (outcome) return outcome;
    actcodec_describe(device, job, hooks->write, device->context);
    actcodec_clear_pending(device);
    if (!job->resident) {
        failed = decompress ? hooks->send(device->context, job->payload, job->size)
                            : hooks->receive(device->context, job->payload, job->room);
        if (failed) return ACTCODEC_DMA_FAILED;
        device->moving = 1;
    }
    put(device, WORD(CONTROL), ACTCODEC__CONTROL__START_bm);
    do {
        if (hooks->wait && hooks->wait(device->context)) return ACTCODEC_GAVE_UP;
        status = get(device, WORD(STATUS));
    } while (!(status & ACTCODEC__STATUS__DONE_bm));
    actcodec_clear_pending(device);
    outcome = (int)FIELD(status, ACTCODEC__STATUS__ERROR);
    if (!job->resident) failed = hooks->finish(device->context, outcome);
    device->moving = 0;
    read_results(device, job);
    job->clipped = !!(status & ACTCODEC__STATUS__CLIPPED_bm);
    actcodec_conclude(device, job);
    return outcome ? outcome : failed ? ACTCODEC_DMA_FAILED : 0;
}

int actcodec_compress(struct actcodec *device, struct actcodec_job *job) {
    return run(device, job, 0);
}

int actcodec_decompress(struct actcodec *device, struct actcodec_job *job) {
    return run(device, job, 1);
}

int actcodec_histogram(struct actcodec *device, uint32_t bins[32]) {
    unsigned k, streams = 0;
    for (k = 0; k < COUNT(modes); k++)
        streams |= modes[k].flags & ACTCODEC_STREAMS && actcodec_has(device, &modes[k]);
    if (!streams) return ACTCODEC_NO_MODE;
    if (at_work(device)) return ACTCODEC_BUSY; /* and BIN could not be written */
    for (k = 0; k < 32; k++) {
        uint32_t word;
        put(device, WORD(BIN), k);
        do word = get(device, WORD(COUNT));
        while (!(word & ACTCODEC__COUNT__COUNTED_bm));
        bins[k] = FIELD(word, ACTCODEC__COUNT__COUNT);
    }
    return 0;
}
