/* The system around the driver: registers and streams of the simulated accelerator, memory, and a cache that is
 * coherent with nothing, so that a missing operation shows. */
#include <stdlib.h>
#include <string.h>

#include "actcodec.h"

enum { PACKET = 128, INTERRUPTED = 1 };

/* Filled in by world.py. The functions are those of actcodec/sim/cpp/environment.cpp. */
struct world {
    void *environment;
    int (*access)(void *, int, uint32_t, uint32_t, uint32_t *);
    int (*run)(void *, int64_t, int64_t);
    void (*send)(void *, int64_t, const uint8_t *, const uint8_t *, const uint8_t *);
    int64_t (*take)(void *, uint8_t *);
    uint8_t *bytes, *cached; /* memory, and what the processor sees of it */
    uint64_t size, address, room;
    int64_t cycles; /* of a wait; 0 gives up at once */
    int64_t lag;    /* cycles after a register is written, in which what should have been done before is missed */
    int failures;   /* accesses without a good response */
    int receiving;
    int cancelled;  /* transfers, when the accelerator was idle again */
};

static uint32_t access_register(struct world *w, int write, uint32_t offset, uint32_t word) {
    w->failures += w->access(w->environment, write, offset, 15, &word) != 0;
    return word;
}

static uint32_t read_register(void *context, uint32_t offset) { return access_register(context, 0, offset, 0); }

static void write_register(void *context, uint32_t offset, uint32_t word) {
    struct world *w = context;
    access_register(w, 1, offset, word);
    if (w->lag) w->run(w->environment, w->lag, 20000);
}

static int inside(const struct world *w, uint64_t address, uint64_t size) {
    return size <= w->size && address <= w->size - size;
}

static void *memory(void *context, uint64_t address, uint64_t size) {
    struct world *w = context;
    return inside(w, address, size) ? w->cached + address : NULL;
}

static void clean(void *context, uint64_t address, uint64_t size) {
    struct world *w = context;
    if (inside(w, address, size)) memcpy(w->bytes + address, w->cached + address, size);
}

static void invalidate(void *context, uint64_t address, uint64_t size) {
    struct world *w = context;
    if (inside(w, address, size)) memcpy(w->cached + address, w->bytes + address, size);
}

static int receive(void *context, uint64_t address, uint64_t room) {
    struct world *w = context;
    w->address = address, w->room = room, w->receiving = 1;
    return !inside(w, address, room);
}

static int send(void *context, uint64_t address, uint64_t size) {
    struct world *w = context;
    size_t beats = size ? (size_t)(size + PACKET - 1) / PACKET : 1;
    uint8_t *data, *keep, *last;
    w->receiving = 0;
    if (!inside(w, address, size)) return 1;
    data = calloc(beats, 2 * PACKET + 1), keep = data + beats * PACKET, last = keep + beats * PACKET;
    memcpy(data, w->bytes + address, size);
    memset(keep, 1, size);
    last[beats - 1] = 1;
    w->send(w->environment, (int64_t)beats, data, keep, last);
    free(data);
    return 0;
}

static int finish(void *context, int outcome) {
    struct world *w = context;
    int64_t size;
    uint8_t *frame;
    w->cancelled += outcome == ACTCODEC_GAVE_UP;
    if (!w->receiving || outcome < 0 || ACTCODEC_REFUSED(outcome)) return 0;
    size = w->take(w->environment, NULL);
    if (size < 0) return 1;
    frame = malloc(size ? (size_t)size : 1);
    w->take(w->environment, frame);
    if ((uint64_t)size <= w->room) memcpy(w->bytes + w->address, frame, (size_t)size);
    free(frame);
    return (uint64_t)size > w->room;
}

static int wait_for(void *context) {
    struct world *w = context;
    return w->cycles ? w->run(w->environment, w->cycles, 20000) != INTERRUPTED : 1;
}

const struct actcodec_hooks hooks = {read_register, write_register, memory, clean, invalidate, receive, send, finish,
                                     wait_for};
const size_t job_size = sizeof(struct actcodec_job), scratch_size = sizeof(struct actcodec_scratch);
