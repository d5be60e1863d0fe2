// Nibble planes with 2-bit width codes (golden/jpegact/nibble.py).
#pragma once
#include "blocks.h"

struct Swap {
    int distance;
    uint32_t mask;
    constexpr Swap(int a, int b) : distance((1 << b) - (1 << a)), mask(0) {
        for (int p = 0; p < 32; p++) mask |= uint32_t((p >> a & 1) && !(p >> b & 1)) << p;
    }
    uint32_t operator()(uint32_t x) const {
        uint32_t change = (x ^ x >> distance) & mask;
        return x ^ change ^ change << distance;
    }
};

constexpr Swap SWAPS[4] = {{0, 3}, {1, 4}, {2, 3}, {3, 4}};  // of bits whose places differ in these two bits

// All bits of a group's values together, for each group of a block.
static inline void unions(const uint8_t *x, bool straight, uint32_t *folded, uint32_t *all) {
    uint8_t u[N];
    for (int v = 0; v < N; v++) u[v] = fold(x[v], straight);
    memcpy(folded, u, N);
    for (int g = 0; g < GROUPS; g++) {
        uint32_t half = folded[g] | folded[g] >> 16;
        all[g] = (half | half >> 8) & 255;
    }
}

// A bit for each group whose bits are above its limit.
static inline uint32_t groups_above(const uint32_t *all, const uint32_t *limit) {
#ifdef __AVX512F__
    return _mm512_cmpgt_epu32_mask(_mm512_loadu_si512(all), _mm512_loadu_si512(limit));
#else
    uint32_t above = 0;
    for (int g = 0; g < GROUPS; g++) above |= uint32_t(all[g] > limit[g]) << g;
    return above;
#endif
}

// The widths that an entry of a table gives to the four codes, ascending: a base in bits 2:0, a family in 4:3.
struct Widths {
    static constexpr int ENTRIES = 32;
    int of[4];
    explicit Widths(int entry) {
        static constexpr int ABOVE[4][4] = {{0, 1, 2, 3}, {0, 1, 2, 4}, {-8, 0, 1, 3}, {-8, 0, 1, 2}};
        for (int code = 0; code < 4; code++) of[code] = std::clamp((entry & 7) + ABOVE[entry >> 3][code], 0, 8);
    }
};

// A table is its word in two parts, of LOW bits each: entries of eight groups, five bits each. `straight` is above them.
constexpr int LOW = 5 * GROUPS / 2;
struct Nibble {
    static constexpr int RAW = 64, MOST = 118, TOO_WIDE = 1 << 10;
    bool straight;
    uint32_t limit[4][GROUPS], more[5][GROUPS];  // what a width has room for, and what the next one adds
    uint64_t masks[GROUPS / 2][16];  // of the planes of two groups, for both codes

    Nibble(int64_t low, int64_t high) : straight(high >> LOW) {
        auto planes = [](int width) { return (uint64_t(1) << 4 * width) - 1; };
        for (int g = 0; g < GROUPS; g++) {
            const Widths widths((g < GROUPS / 2 ? low : high) >> 5 * (g % (GROUPS / 2)) & 31);
            more[4][g] = TOO_WIDE;
            for (int code = 0; code < 4; code++) {
                limit[code][g] = (1 << widths.of[code]) - 1;
                more[code][g] = widths.of[code] - (code ? widths.of[code - 1] : 0);
            }
            for (int codes = 0; codes < 16; codes++) {
                uint64_t &mask = masks[g / 2][codes];
                mask = g % 2 ? mask | planes(widths.of[codes / 4]) << 32 : planes(widths.of[codes % 4]);
            }
        }
    }

    int64_t step(uint8_t first) const { return 1 + std::min<int>(first, RAW); }

    static uint32_t planes(uint32_t x) { return SWAPS[3](SWAPS[2](SWAPS[1](SWAPS[0](x)))); }  // bit j of value v to 4j + v
    static uint32_t values(uint32_t x) { return SWAPS[0](SWAPS[1](SWAPS[2](SWAPS[3](x)))); }

    uint64_t mask(uint32_t codes, int pair) const { return masks[pair][codes >> 4 * pair & 15]; }

    // The groups of a block, folded, and the first byte and the codes of their widths.
    uint8_t plan(const uint8_t *x, uint32_t *folded, uint32_t &codes) const {
        uint32_t all[GROUPS], above[3], total = 0;
        unions(x, straight, folded, all);
        for (int code = 0; code < 3; code++) above[code] = groups_above(all, limit[code]);
        codes = spread(above[1], 0xaaaaaaaa) | spread((above[0] & ~above[1]) | above[2], 0x55555555);
        for (int g = 0; g < GROUPS; g++) {
            uint32_t width = more[0][g];
            for (int code = 0; code < 4; code++) width += all[g] > limit[code][g] ? more[code + 1][g] : 0;
            total += width;
        }
        return is_zero(x) ? 0 : total > MOST ? RAW : 4 + (total + 1) / 2;
    }

    int64_t size(const uint8_t *x) const {
        uint32_t folded[GROUPS], codes;
        return step(plan(x, folded, codes));
    }

    int64_t encode(const uint8_t *x, uint8_t *to) const {
        uint32_t groups[GROUPS], codes;
        to[0] = plan(x, groups, codes);
        if (!to[0]) return 1;
        for (int g = 0; g < GROUPS; g++) groups[g] = planes(groups[g]);
        if (to[0] == RAW) {
            memcpy(to + 1, groups, N);
        } else {
            memcpy(to + 1, &codes, 4);
            Writer writer{to + 5};
            for (int pair = 0; pair < GROUPS / 2; pair++) {
                const uint64_t own = mask(codes, pair);
                writer.put(picked_halves(load64(groups + 2 * pair), own), __builtin_popcountll(own));
            }
            writer.end();
        }
        return step(to[0]);
    }

    // To planes, which `finish` takes.
    void decode(const uint8_t *from, uint8_t *x) const {
        if (from[0] == RAW) {
            memcpy(x, from + 1, N);
        } else if (!from[0]) {
            memset(x, 0, N);
        } else {
            Reader reader{from + 5};
            uint32_t codes = load64(from + 1);
            for (int pair = 0; pair < GROUPS / 2; pair++) {
                const uint64_t own = mask(codes, pair);
                const uint64_t groups = spread_halves(reader.get(__builtin_popcountll(own)), own);
                memcpy(x + 8 * pair, &groups, 8);
            }
        }
    }

    // Makes values of the planes of blocks.
    void finish(uint8_t *x, int64_t n) const {
        for (int64_t i = 0; i < N * n; i += N) {
            uint32_t groups[GROUPS];
            memcpy(groups, x + i, N);
            for (int g = 0; g < GROUPS; g++) groups[g] = values(groups[g]);
            memcpy(x + i, groups, N);
        }
        unfold_all(x, N * n, straight);
    }
};

// How many groups of each place need each width, of blocks that are not zero; returns how many these are.
typedef int64_t Counts[GROUPS][9];

static int64_t count_widths(const uint8_t *x, int64_t n, bool straight, Counts &counts) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i += UNIT) {
        const int64_t count = std::min(UNIT, n - i);
        uint8_t all[UNIT][GROUPS], above[9][GROUPS] = {};
        for (int64_t b = 0; b < count; b++) {
            uint32_t folded[GROUPS], own[GROUPS];
            unions(x + N * (i + b), straight, folded, own);
            for (int g = 0; g < GROUPS; g++) all[b][g] = own[g];
        }
        int64_t used = 0;
        for (int64_t b = 0; b < count; b++) used += (load64(all[b]) | load64(all[b] + 8)) != 0;
        for (int w = 0; w < 8; w++) {
            const uint8_t most = (1 << w) - 1;
            for (int64_t b = 0; b < count; b++)
                for (int g = 0; g < GROUPS; g++) above[w][g] += all[b][g] > most;
        }
        for (int g = 0; g < GROUPS; g++)
            for (int w = 0; w < 9; w++) counts[g][w] += (w ? above[w - 1][g] : used) - above[w][g];
        total += used;
    }
    return total;
}

// The first of the cheapest entries for groups that need each width so often.
static int best_entry(const int64_t (&counts)[9]) {
    constexpr int MISFIT = 88;  // nibbles, as golden's
    int64_t least = INT64_MAX;
    int best = 0;
    for (int entry = 0; entry < Widths::ENTRIES; entry++) {
        const Widths widths(entry);
        int64_t cost = 0;
        for (int need = 0; need < 9; need++) {
            int width = MISFIT;
            for (int code = 3; code >= 0; code--) width = widths.of[code] >= need ? widths.of[code] : width;
            cost += width * counts[need];
        }
        if (cost < least) least = cost, best = entry;
    }
    return best;
}

// Both parts of the table for blocks, and, as the third number, bytes that no payload of theirs is below: a block that is
// not zero and needs so many nibbles has 5 bytes and half a byte for each, or 65, at which 128 nibbles end.
static void fit_widths(const uint8_t *x, int64_t n, bool straight, int64_t *numbers) {
    Counts counts = {};
    const int64_t used = count_widths(x, n, straight, counts);
    numbers[0] = 0, numbers[1] = int64_t(straight) << LOW;
    int64_t nibbles = 0;
    for (int g = 0; g < GROUPS; g++) {
        numbers[g / (GROUPS / 2)] |= int64_t(best_entry(counts[g])) << 5 * (g % (GROUPS / 2));
        for (int need = 0; need < 9; need++) nibbles += need * counts[g][need];
    }
    numbers[2] = n + 4 * used + (60 * nibbles + 127) / 128;
}
