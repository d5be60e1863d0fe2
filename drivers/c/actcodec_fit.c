/* Scales, tables, steps and books: what software works out; actcodec.h says what each function does.
 *
 * Copyright (c) 2026, the actcodec authors. SPDX-License-Identifier: BSD-2-Clause
 */
#include <string.h>

#include "actcodec_internal.h"

#define NORMAL 0x00800000u
#define INFINITE 0x7f800000u
#define MAGNITUDE 0x7fffffffu

static uint32_t setting_number(const struct actcodec_job *job, const char *name) {
    const struct actcodec_setting *setting = actcodec_setting_of(job->mode, name);
    uint32_t word = setting ? job->settings[setting->low / 32] >> setting->low % 32 : 0;
    return setting && setting->width < 32 ? word & ((UINT32_C(1) << setting->width) - 1) : word;
}

/* A float16 as a float32: exactly. */
static uint32_t widened(uint32_t half) {
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
    if (exponent == 31) return sign | INFINITE | mantissa << 13;
    exponent += 127 - 15;
    if (!(half >> 10 & 31)) {
        if (!mantissa) return sign;
        for (exponent++; !(mantissa & 1024); exponent--) mantissa <<= 1;
    }
    return sign | exponent << 23 | (mantissa & 1023) << 13;
}

/* A value of a row, as a float32. */
static uint32_t value_of(const struct actcodec_job *job, const uint8_t *row, uint64_t column) {
    const uint8_t *place = row + (size_t)(value_bytes(job) * column);
    uint32_t half;
    if (job->format == ACTCODEC_FORMAT_FLOAT32) return load(place);
    half = place[0] | (uint32_t)place[1] << 8;
    return job->format == ACTCODEC_FORMAT_BFLOAT16 ? half << 16 : widened(half);
}

/* 2^exponent * a / b as a float32 rounded to nearest even; `a` and `b` have 24 bits, the quotient is a normal number. */
static uint32_t quotient(uint32_t a, uint32_t b, int exponent) {
    uint64_t q = ((uint64_t)a << 30) / b, rest = ((uint64_t)a << 30) % b; /* 30 or 31 bits */
    int bits = q >> 30 ? 31 : 30, drop = bits - 24;
    uint64_t low = q & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
    uint32_t mantissa = (uint32_t)(q >> drop);
    if (low > half || (low == half && (rest || mantissa & 1))) mantissa++;
    return ((uint32_t)(exponent + bits - 31 + 127) << 23) + (mantissa - NORMAL);
}

static int exponent_of(uint32_t bits) {
    return (int)(bits >> 23 & 0xff) - 127;
}

static uint32_t mantissa_of(uint32_t bits) {
    return (bits & (NORMAL - 1)) | NORMAL;
}

uint32_t actcodec_scale(uint32_t largest) {
    uint32_t k, most = (uint32_t)(127 + 126) << 23; /* 2^126 */
    largest &= MAGNITUDE;
    if (largest < NORMAL || largest >= INFINITE) return 0;
    if (exponent_of(largest) < 7 - 126) return most;            /* 144 / m is more than 2^126 */
    k = quotient(0x900000, mantissa_of(largest), 7 - exponent_of(largest)); /* 144 = 1.125 * 2^7 */
    k = (k + 0x7fff + (k >> 16 & 1)) & 0xffff0000u;
    return k < most ? k : most;
}

uint32_t actcodec_reciprocal(uint32_t word) {
    uint32_t k = word & 0x7fff0000u;
    if (k < NORMAL) return 0;
    if (k > (uint32_t)(127 + 126) << 23) return 0; /* a subnormal number, which the accelerator takes for 0 */
    return quotient(NORMAL, mantissa_of(k), -exponent_of(k));
}

/* The row r of a tensor whose first byte is at `base`. */
static const uint8_t *row_of(const struct actcodec_job *job, const uint8_t *base, uint64_t r) {
    return base + (size_t)(r * job->stride);
}

/* The tensor, as the processor sees it; what it has in its cache of it is that of memory. */
static const uint8_t *tensor(struct actcodec *device, struct actcodec_job *job) {
    return job->words ? device->hooks->memory(device->context, job->address, extent(job)) : NULL;
}

int actcodec_scales(struct actcodec *device, struct actcodec_job *job) {
    const uint8_t *base = tensor(device, job);
    uint32_t r, k, channel;
    if (job->format == ACTCODEC_FORMAT_INT8) return ACTCODEC_NO_FORMAT;
    if (!base) return ACTCODEC_NO_MEMORY;
    memset(job->words, 0, sizeof *job->words * job->channels);
    for (r = 0; r < job->rows; r++) {
        const uint8_t *row = row_of(job, base, r);
        uint32_t *largest = &job->words[r / job->height % job->channels];
        for (k = 0; k < job->width; k++) {
            uint32_t bits = value_of(job, row, k) & MAGNITUDE;
            if (bits < INFINITE && bits > *largest) *largest = bits;
        }
    }
    for (channel = 0; channel < job->channels; channel++) job->words[channel] = actcodec_scale(job->words[channel]);
    return 0;
}

/* x * mantissa * 2^exponent rounded to the nearest integer, ties to even; x is a float32, 0 if subnormal or not finite;
 * `mantissa` has 24 bits at most, the result 31. */
static int32_t rounded(uint32_t x, uint32_t mantissa, int exponent) {
    uint64_t product, magnitude, low, half;
    int drop;
    if ((x & MAGNITUDE) < NORMAL || (x & MAGNITUDE) >= INFINITE || !mantissa) return 0;
    product = (uint64_t)mantissa_of(x) * mantissa;
    drop = -(exponent_of(x) - 23 + exponent);
    if (drop > 60) return 0;
    if (drop <= 0) magnitude = product << -drop;
    else {
        magnitude = product >> drop;
        low = product & ((UINT64_C(1) << drop) - 1), half = UINT64_C(1) << (drop - 1);
        magnitude += low > half || (low == half && (magnitude & 1));
    }
    return x >> 31 ? -(int32_t)magnitude : (int32_t)magnitude;
}

static unsigned log2_of(unsigned n) {
    unsigned k = 0;
    while (n >>= 1) k++;
    return k;
}

/* What DIVISION makes of a plane. */
struct plane {
    const struct actcodec_job *job;
    const uint8_t *base;
    uint32_t mantissa; /* of the scale */
    int exponent;
    int lfc, minimum;
    int exact; /* values in 64ths, less a mean that is not rounded */
    int32_t low, high;
};

static int32_t value(const struct plane *p, uint64_t row, uint64_t column) {
    return rounded(value_of(p->job, row_of(p->job, p->base, row), column), p->mantissa, p->exponent);
}

/* A segment: `rows` rows of `columns` values, whose mean is that of `front` values of each row, 2^shift in all. */
static void segment(struct plane *p, uint64_t row, unsigned rows, uint64_t column, unsigned columns, unsigned front,
                    unsigned shift) {
    int32_t sum = 0, least = INT32_MAX, low = INT32_MAX, high = INT32_MIN, offset = 0;
    unsigned r, c;
    for (r = 0; r < rows; r++)
        for (c = 0; c < columns; c++) {
            int32_t y = value(p, row + r, column + c);
            if (c < front) sum += y;
            if (y < low) low = y;
            if (y > high) high = y;
        }
    least = low;
    if (p->lfc) offset = p->minimum ? least * 64 : sum * (64 >> shift); /* in 64ths */
    if (p->exact) low = low * 64 - offset, high = high * 64 - offset;
    else {
        offset += 32;
        offset = offset >= 0 ? offset / 64 : -((63 - offset) / 64); /* rounded down */
        low -= offset, high -= offset;
    }
    if (low < p->low) p->low = low;
    if (high > p->high) p->high = high;
}

/* Smallest and largest values of a plane, less what is taken off their segments. */
static void extremes(struct plane *p, uint32_t number) {
    const struct actcodec_job *job = p->job;
    uint64_t sectors = (job->width + LANES - 1u) / LANES, row, column, part;
    uint64_t step = (uint64_t)job->height * job->channels;
    p->low = INT32_MAX, p->high = INT32_MIN;
    for (part = (uint64_t)number * job->height; part < job->rows; part += step)
        for (row = part; row < part + job->height && row < job->rows;) {
            if (job->mode->flags & ACTCODEC_TILED) {
                for (column = 0; column < job->width; column += LANES) {
                    unsigned columns = job->width - column < LANES ? (unsigned)(job->width - column) : LANES;
                    unsigned shift = log2_of(columns);
                    segment(p, row, LANES, column, columns, 1u << shift, 3 + shift);
                }
                row += LANES;
            } else {
                for (column = 0; column < sectors;) { /* a sector */
                    uint64_t end = column + LANES - (row * sectors + column) % LANES, values;
                    unsigned whole, shift;
                    if (end > sectors) end = sectors;
                    values = LANES * end < job->width ? LANES * end : job->width;
                    values -= LANES * column;
                    whole = (unsigned)(values / LANES);
                    shift = whole ? 3 + log2_of(whole) : log2_of((unsigned)values);
                    segment(p, row, 1, LANES * column, (unsigned)values, 1u << shift, shift);
                    column = end;
                }
                row++;
            }
        }
}

/* a * 2^exponent / b rounded down to a bfloat16 of at most 2^126, as the bits of a float32. `a` has 32 bits at most. */
static uint32_t quotient_down(uint64_t a, uint64_t b, int exponent) {
    uint64_t q = (a << 31) / b; /* of more than 8 bits */
    int bits = 0;
    uint32_t result;
    while (q >> bits) bits++;
    exponent += bits - 1 - 31;
    if (exponent >= 126) return (uint32_t)(127 + 126) << 23;
    result = (uint32_t)(bits > 8 ? q >> (bits - 8) : q << (8 - bits)) & 0x7f;
    return (uint32_t)(exponent + 127) << 23 | result << 16;
}

int actcodec_division(struct actcodec *device, struct actcodec_job *job) {
    struct plane p = {0};
    uint32_t number;
    int32_t step = 64 >> job->mode->row, span = 64 - step, top = 128 - step;
    if (job->mode->view != ACTCODEC_VIEW_PLANES) return ACTCODEC_NO_MODE;
    p.job = job;
    p.base = tensor(device, job);
    if (!p.base) return ACTCODEC_NO_MEMORY;
    p.lfc = (int)setting_number(job, "lfc");
    p.minimum = (int)setting_number(job, "minimum");
    for (number = 0; number < job->channels; number++) {
        uint32_t largest = 0, k, other;
        uint64_t row, part, column;
        for (part = (uint64_t)number * job->height; part < job->rows; part += (uint64_t)job->height * job->channels)
            for (row = part; row < part + job->height && row < job->rows; row++)
                for (column = 0; column < job->width; column++) {
                    uint32_t magnitude = value_of(job, row_of(job, p.base, row), column) & MAGNITUDE;
                    if (magnitude < INFINITE && magnitude > largest) largest = magnitude;
                }
        job->words[number] = 0;
        if (largest < NORMAL) continue;
        p.mantissa = 1;
        p.exponent = 14 - exponent_of(largest);
        p.exact = 1;
        extremes(&p, number);
        k = quotient_down((uint64_t)top, mantissa_of(largest), 23 - exponent_of(largest));
        if (p.high != p.low) {
            other = quotient_down((uint64_t)span * 64, (uint64_t)((int64_t)p.high - p.low), p.exponent);
            if (other < k) k = other;
        }
        p.exact = 0;
        for (;; k -= UINT32_C(1) << 16) {
            p.mantissa = mantissa_of(k) >> 16;
            p.exponent = exponent_of(k) - 7;
            extremes(&p, number);
            if (p.high - p.low <= span) break;
        }
        job->words[number] = k | (uint8_t)(p.low < -128 ? -128 : p.low);
    }
    return 0;
}

uint32_t actcodec_step(float bound) {
    const uint32_t most = (uint32_t)(127 + 112) << 7;
    uint32_t bits, step;
    memcpy(&bits, &bound, sizeof bits);
    if (bits >= INFINITE) return bits == INFINITE ? most : 0; /* negative, or not a number */
    if (bits < NORMAL) return 0;
    step = (bits + NORMAL) >> 16;
    return step < most ? step : most;
}

/* The bin of a symbol. */
static unsigned bin_of(unsigned symbol) {
    unsigned octave = log2_of(symbol);
    return symbol < 16 ? symbol : 16 + 2 * (octave - 4) + (symbol >> (octave - 1) & 1);
}

/* Values of a symbol, if those of a bin are equally frequent. */
static double frequency(const uint32_t bins[32], unsigned symbol) {
    return symbol < 16 ? bins[symbol] : (double)bins[bin_of(symbol)] / (1u << (log2_of(symbol) - 1));
}

/* How many codes of each length of 1 to 8 bits have least cost for `count` weights that never fall: package-merge
 * (Larmore and Hirschberg, 1990). */
static void lengths(struct actcodec_scratch *s, unsigned count, unsigned counts[8]) {
    unsigned level, k, size = count, from = 0, items = 2 * count - 2;
    unsigned length[256] = {0};
    memcpy(s->merged[0], s->weights, count * sizeof *s->weights);
    memset(s->single[0], 1, count);
    for (level = 1; level < 8; level++) {
        const double *before = s->merged[from];
        double *after = s->merged[1 - from];
        unsigned packages = size / 2, one = 0, two = 0;
        for (k = 0; k < count + packages; k++) {
            double package = two < packages ? before[2 * two] + before[2 * two + 1] : 0;
            if (one < count && (two == packages || s->weights[one] <= package)) {
                after[k] = s->weights[one++];
                s->single[level][k] = 1;
            } else {
                after[k] = package;
                two++;
                s->single[level][k] = 0;
            }
        }
        size = count + packages;
        from = 1 - from;
    }
    for (level = 8; level-- > 0;) {
        unsigned singles = 0;
        for (k = 0; k < items; k++) singles += s->single[level][k];
        for (k = 0; k < singles; k++) length[k]++;
        items = 2 * (items - singles);
    }
    memset(counts, 0, 8 * sizeof *counts);
    for (k = 0; k < count; k++) counts[length[k] - 1]++;
}

void actcodec_book(const uint32_t bins[32], uint8_t counts[7], struct actcodec_scratch *s) {
    enum { SYMBOLS = 4096, MOST = 255, ONE_BYTE = 224, BYTE = 8 + 16 };
    double total = 0, two = 0, best = -1, above; /* two: of those with an escape of two bytes */
    unsigned symbol, last = 0, pools = 0, U, k, candidates;
    for (symbol = 0; symbol < SYMBOLS; symbol++) {
        double h = frequency(bins, symbol);
        total += h;
        if (h > 0) last = symbol + 1;
        if (symbol > ONE_BYTE) two += h;
    }
    candidates = last < 1 ? 1 : last > MOST ? MOST : last;
    above = total;
    for (U = 1; U <= candidates; U++) {
        unsigned count, found[8], length;
        double cost, direct = 0;
        above -= frequency(bins, U - 1);
        /* frequencies made falling, by pooling neighbours that rise */
        s->pool_sum[pools] = frequency(bins, U - 1);
        s->pool_size[pools++] = 1;
        while (pools > 1 && s->pool_sum[pools - 2] * s->pool_size[pools - 1]
                                < s->pool_sum[pools - 1] * s->pool_size[pools - 2]) {
            pools--;
            s->pool_sum[pools - 1] += s->pool_sum[pools];
            s->pool_size[pools - 1] = (uint16_t)(s->pool_size[pools - 1] + s->pool_size[pools]);
        }
        for (k = pools, count = 1; k-- > 0;) {
            unsigned n;
            for (n = 0; n < s->pool_size[k]; n++) s->weights[count++] = s->pool_sum[k] / s->pool_size[k];
        }
        s->weights[0] = above < s->weights[1] ? above : s->weights[1]; /* of the escape */
        lengths(s, count, found);
        /* the sums are exact: multiples of 2^-10 below 2^43 */
        for (symbol = 0, length = 1, k = 0; symbol < U; symbol++, k++) {
            while (k == found[length - 1]) length++, k = 0;
            direct += frequency(bins, symbol) * length;
        }
        while (k == found[length - 1]) length++, k = 0;
        cost = direct + above * length + BYTE * (above + two);
        if (best < 0 || cost < best) {
            best = cost;
            for (k = 0; k < 7; k++) counts[k] = (uint8_t)found[k];
        }
        two -= frequency(bins, U + ONE_BYTE);
    }
}
