// The block codes of golden/jpegact/rice.py and nibble.py (blockcodes.py). A block is 64 bytes in the CDU's order; blocks of
// a payload follow each other, and what a first byte says is how long its block is.
#include "common.h"
#include <numeric>
#ifdef __BMI2__
#include <immintrin.h>
#endif

constexpr int64_t N = 64, GROUPS = 16, DIAGONALS = 15, UNIT = 64;  // values of a block; blocks at a time
constexpr int64_t ROOM = 96;  // bytes: the longest block, and what a write of 64 bits behind it needs

// The bits of x that a mask picks, moved together; and the reverse.
static inline uint64_t picked(uint64_t x, uint64_t mask) {
#ifdef __BMI2__
    return _pext_u64(x, mask);
#else
    uint64_t out = 0;
    for (int place = 0; mask; place++, mask &= mask - 1) out |= uint64_t((x & mask & -mask) != 0) << place;
    return out;
#endif
}

static inline uint64_t spread(uint64_t x, uint64_t mask) {
#ifdef __BMI2__
    return _pdep_u64(x, mask);
#else
    uint64_t out = 0;
    for (; mask; x >>= 1, mask &= mask - 1) out |= (mask & -mask) & -(x & 1);
    return out;
#endif
}

static inline uint8_t length(uint8_t x) { return x ? 32 - __builtin_clz(x) : 0; }

static inline uint8_t fold(uint8_t x, bool straight) { return straight ? x : uint8_t(x << 1) ^ uint8_t(int8_t(x) >> 7); }

static inline uint8_t unfold(uint8_t u, bool straight) { return straight ? u : uint8_t(u >> 1) ^ uint8_t(-(u & 1)); }

// A bit for each of 64 bytes of 0 or 1.
static inline uint64_t bits_of(const uint8_t *bytes) {
    uint64_t bits = 0;
    for (int i = 0; i < 8; i++) bits |= (load64(bytes + 8 * i) * GATHER >> 56) << 8 * i;
    return bits;
}

// A mask of groups, one bit each, as a mask of their values.
static inline uint64_t values_of(uint32_t groups) { return spread(groups, 0x1111111111111111) * 15; }

// Bits of a block, from the lowest bit of its first byte on.
struct Writer {
    uint8_t *to;
    int64_t place = 0;
    void put(uint64_t field, int64_t width) {  // 56 bits at most, none above the width
        uint64_t word = load64(to + (place >> 3)) | field << (place & 7);
        memcpy(to + (place >> 3), &word, 8);
        place += width;
    }
    void long_put(uint64_t field, int64_t width) {
        put(field & 0xffffffff, std::min<int64_t>(width, 32));
        if (width > 32) put(field >> 32, width - 32);
    }
};

struct Reader {
    const uint8_t *from;
    int64_t place = 0;
    uint64_t get(int64_t width) {  // 56 bits at most
        uint64_t field = load64(from + (place >> 3)) >> (place & 7) & ((uint64_t(1) << width) - 1);
        place += width;
        return field;
    }
    uint64_t long_get(int64_t width) {
        uint64_t low = get(std::min<int64_t>(width, 32));
        return width > 32 ? low | get(width - 32) << 32 : low;
    }
};

// ---- Golomb-Rice codes: a table is its word

struct Rice {
    static constexpr int RAW = 63, MOST = 62;
    bool straight;
    int64_t flags;
    uint8_t e[4], k[N], more[4][N];

    explicit Rice(int64_t word) : straight(word >> 62 & 1), flags(word >> 45 & 31) {
        for (int i = 0; i < 4; i++) e[i] = word >> (50 + 3 * i) & 7;
        for (int v = 0; v < N; v++) {
            k[v] = word >> 3 * (v / 8 + v % 8) & 7;
            for (int i = 0; i < 4; i++) more[i][v] = std::min<int>(e[i], 8 - k[v]);
        }
    }

    int64_t step(uint8_t first) const { return 1 + (first % 64 == RAW ? N : first % 64); }

    struct Plan {
        uint8_t mantissa[N], width[N];
        uint64_t planes[3];
        uint32_t group, present;
        uint8_t head;
    };

    void plan(const uint8_t *x, Plan &p) const {
        uint8_t shift[N], u[N], mantissa[N], width[N], kind[N], rests[N], above[3][N];  // no pointer sees these: vectors
        const uint8_t top = straight ? 2 : 3, first = straight;
        memcpy(shift, k, N);
        for (int v = 0; v < N; v++) u[v] = fold(x[v], straight);
        for (int v = 0; v < N; v++) {
            uint8_t some = first & (u[v] != 0), w = u[v] - some, quotient = w >> shift[v];
            uint8_t c = quotient < top ? quotient : top;
            rests[v] = quotient - c;
            mantissa[v] = w - uint8_t(c << shift[v]);
            kind[v] = c + some;
            width[v] = first > kind[v] ? 0 : shift[v];
        }
        uint8_t any = 0, rest = 0;
        for (int v = 0; v < N; v++) any |= u[v];
        for (int v = 0; v < N; v++) rest = rest < rests[v] ? rests[v] : rest;
        uint8_t need = length(rest);
        int i = (need > e[0]) + (need > e[1]) + (need > e[2]), total = 0;
        memcpy(rests, more[i], N);
        for (int v = 0; v < N; v++) width[v] += kind[v] == 3 ? rests[v] : 0;
        for (int v = 0; v < N; v++) total += width[v];
        for (int i = 0; i < 3; i++)
            for (int v = 0; v < N; v++) above[i][v] = kind[v] > i;
        for (int i = 0; i < 3; i++) p.planes[i] = bits_of(above[i]);
        memcpy(p.mantissa, mantissa, N);
        memcpy(p.width, width, N);
        uint64_t some = p.planes[0] | p.planes[0] >> 1;
        p.group = picked(some | some >> 2, 0x1111111111111111);
        p.present = p.group | ((1u << (GROUPS - flags)) - 1);
        total += flags + 4 * __builtin_popcount(p.present);
        total += __builtin_popcountll(p.planes[0]) + __builtin_popcountll(p.planes[1]);
        int64_t bytes = (total + 7) >> 3;
        p.head = !any ? 0 : need > e[3] || bytes > MOST ? RAW : uint8_t(bytes | i << 6);
    }

    int64_t size(const uint8_t *x) const {
        Plan p;
        plan(x, p);
        return step(p.head);
    }

    int64_t encode(const uint8_t *x, uint8_t *to) const {  // `to`: zeros
        Plan p;
        plan(x, p);
        to[0] = p.head;
        if (p.head == RAW) memcpy(to + 1, x, N);
        else if (p.head) {
            Writer writer{to, 8};
            writer.put(p.group >> (GROUPS - flags), flags);
            writer.long_put(picked(p.planes[0], values_of(p.present)), 4 * __builtin_popcount(p.present));
            for (int i = 0; i < 2; i++)
                writer.long_put(picked(p.planes[i + 1], p.planes[i]), __builtin_popcountll(p.planes[i]));
            for (int v = 0; v < N; v += 4) {
                uint64_t field = 0;
                int64_t width = 0;
                for (int j = v; j < v + 4; j++) field |= uint64_t(p.mantissa[j]) << width, width += p.width[j];
                writer.put(field, width);
            }
        }
        return step(p.head);
    }

    void decode(const uint8_t *from, uint8_t *x) const {
        uint8_t first = from[0];
        if (first % 64 == RAW) memcpy(x, from + 1, N);
        else if (!(first % 64)) memset(x, 0, N);
        else {
            Reader reader{from, 8};
            uint32_t present = uint32_t(reader.get(flags)) << (GROUPS - flags) | ((1u << (GROUPS - flags)) - 1);
            uint64_t planes[3] = {spread(reader.long_get(4 * __builtin_popcount(present)), values_of(present))};
            for (int i = 0; i < 2; i++) planes[i + 1] = spread(reader.long_get(__builtin_popcountll(planes[i])), planes[i]);
            for (int v = 0; v < N; v++) {
                uint8_t kind = (planes[0] >> v & 1) + (planes[1] >> v & 1) + (planes[2] >> v & 1);
                uint8_t some = straight && kind, width = straight && !kind ? 0 : k[v] + (kind == 3 ? more[first >> 6][v] : 0);
                x[v] = unfold(uint8_t((kind - some) << k[v]) + some + uint8_t(reader.get(width)), straight);
            }
        }
    }
};

// ---- nibble planes: a table is the widths of 16 groups and four codes

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

struct Nibble {
    static constexpr int RAW = 64, MOST = 118;
    const uint8_t *widths;
    bool straight;

    int64_t step(uint8_t first) const { return 1 + std::min<int>(first, RAW); }

    static uint32_t planes(uint32_t x) { return SWAPS[3](SWAPS[2](SWAPS[1](SWAPS[0](x)))); }  // bit j of value v to 4j + v
    static uint32_t values(uint32_t x) { return SWAPS[0](SWAPS[1](SWAPS[2](SWAPS[3](x)))); }

    struct Plan {
        uint32_t planes[GROUPS], codes = 0;
        uint8_t width[GROUPS], head;
    };

    void plan(const uint8_t *x, Plan &p) const {
        uint8_t u[N];
        for (int v = 0; v < N; v++) u[v] = fold(x[v], straight);
        memcpy(p.planes, u, N);
        int64_t total = 0;
        uint32_t any = 0;
        bool raw = false;
        for (int g = 0; g < GROUPS; g++) p.planes[g] = planes(p.planes[g]), any |= p.planes[g];
        for (int g = 0; g < GROUPS; g++) {
            uint8_t need = p.planes[g] ? (35 - __builtin_clz(p.planes[g])) / 4 : 0;
            const uint8_t *w = widths + 4 * g;
            int code = (need > w[0]) + (need > w[1]) + (need > w[2]);
            raw |= need > w[3];
            p.codes |= uint32_t(code) << 2 * g;
            total += p.width[g] = w[code];
        }
        p.head = !any ? 0 : raw || total > MOST ? RAW : 4 + (total + 1) / 2;
    }

    int64_t size(const uint8_t *x) const {
        Plan p;
        plan(x, p);
        return step(p.head);
    }

    int64_t encode(const uint8_t *x, uint8_t *to) const {
        Plan p;
        plan(x, p);
        to[0] = p.head;
        Writer writer{to, 8};
        if (p.head && p.head != RAW) writer.put(p.codes, 32);
        for (int g = 0; p.head && g < GROUPS; g++) writer.put(p.planes[g], p.head == RAW ? 32 : 4 * p.width[g]);
        return step(p.head);
    }

    void decode(const uint8_t *from, uint8_t *x) const {
        bool raw = from[0] == RAW;
        Reader reader{from, 8};
        uint32_t groups[GROUPS] = {}, codes = from[0] && !raw ? reader.get(32) : 0;
        for (int g = 0; from[0] && g < GROUPS; g++)
            groups[g] = values(reader.get(raw ? 32 : 4 * widths[4 * g + (codes >> 2 * g & 3)]));
        memcpy(x, groups, N);
        for (int v = 0; v < N; v++) x[v] = unfold(x[v], straight);
    }
};

// ---- tensors of n blocks by either code

// Bytes of each UNIT of blocks.
template <class Code> static std::vector<int64_t> sizes(const Code &code, const uint8_t *x, int64_t n, int64_t threads) {
    std::vector<int64_t> units(n / UNIT + 1);
    parallel(n, UNIT, LEAST / N, threads, [&, x, n](int64_t i, int64_t last) {
        for (; i < last; i++) units[i / UNIT] += code.size(x + N * i);
    });
    return units;
}

template <class Code> static int64_t size(const Code &code, const uint8_t *x, int64_t n, int64_t threads) {
    std::vector<int64_t> units = sizes(code, x, n, threads);
    return std::accumulate(units.begin(), units.end(), int64_t(0));
}

template <class Code> static int64_t encode(const Code &code, const uint8_t *x, int64_t n, uint8_t *payload,
                                            int64_t threads) {
    std::vector<int64_t> units = threads > 1 ? sizes(code, x, n, threads) : std::vector<int64_t>(1);
    std::exclusive_scan(units.begin(), units.end(), units.begin(), int64_t(0));
    parallel(n, UNIT, LEAST / N, threads, [&](int64_t i, int64_t last) {
        for (uint8_t *to = payload + units[i / UNIT]; i < last; i++) {
            uint8_t block[ROOM] = {};
            int64_t size = code.encode(x + N * i, block);
            memcpy(to, block, size);
            to += size;
        }
    });
    return 0;
}

template <class Code> static int64_t decode(const Code &code, const uint8_t *payload, int64_t n, uint8_t *x,
                                            int64_t threads) {
    std::vector<int64_t> units(n / UNIT + 1);
    int64_t place = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i % UNIT == 0) units[i / UNIT] = place;
        place += code.step(payload[place]);
    }
    parallel(n, UNIT, LEAST / N, threads, [&](int64_t i, int64_t last) {
        for (const uint8_t *from = payload + units[i / UNIT]; i < last; i++) {
            uint8_t block[ROOM] = {};
            int64_t bytes = code.step(*from);
            memcpy(block, from, bytes);
            code.decode(block, x + N * i);
            from += bytes;
        }
    });
    return 0;
}

EXPORT int64_t rice_size(const uint8_t *x, int64_t n, int64_t word, int64_t threads) {
    return size(Rice(word), x, n, threads);
}

EXPORT int64_t rice_encode(const uint8_t *x, int64_t n, int64_t word, uint8_t *payload, int64_t threads) {
    return encode(Rice(word), x, n, payload, threads);
}

EXPORT int64_t rice_decode(const uint8_t *payload, int64_t n, int64_t word, uint8_t *x, int64_t threads) {
    return decode(Rice(word), payload, n, x, threads);
}

EXPORT int64_t nibble_size(const uint8_t *x, int64_t n, const uint8_t *widths, int64_t straight, int64_t threads) {
    return size(Nibble{widths, bool(straight)}, x, n, threads);
}

EXPORT int64_t nibble_encode(const uint8_t *x, int64_t n, const uint8_t *widths, int64_t straight, uint8_t *payload,
                             int64_t threads) {
    return encode(Nibble{widths, bool(straight)}, x, n, payload, threads);
}

EXPORT int64_t nibble_decode(const uint8_t *payload, int64_t n, const uint8_t *widths, int64_t straight, uint8_t *x,
                             int64_t threads) {
    return decode(Nibble{widths, bool(straight)}, payload, n, x, threads);
}

// How many groups of each place need each width, int64 [16, 9], of blocks that are not zero.
EXPORT int64_t nibble_counts(const uint8_t *x, int64_t n, int64_t straight, int64_t *counts, int64_t) {
    for (; n; n--, x += N) {
        uint8_t u[N], any = 0;
        for (int v = 0; v < N; v++) any |= u[v] = fold(x[v], straight);
        for (int g = 0; any && g < GROUPS; g++) {
            const uint8_t *one = u + 4 * g;
            counts[9 * g + length(one[0] | one[1] | one[2] | one[3])]++;
        }
    }
    return 0;
}

// ---- tiles, with a row of n values for each place, and blocks, column by column

// Bytes of eight words, exchanged with the words of eight bytes.
static inline void transpose(uint64_t *x) {
    constexpr uint64_t MASKS[3] = {0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
    for (int step = 0; step < 3; step++)
        for (int i = 0, far = 1 << step, by = 8 << step; i < 8; i++)
            if (!(i & far)) {
                uint64_t change = (x[i] >> by ^ x[i + far]) & MASKS[step];
                x[i] ^= change << by, x[i + far] ^= change;
            }
}

template <bool back> static void exchange(const uint8_t *from, int64_t n, uint8_t *to, int64_t first, int64_t last) {
    for (int64_t b = first; b < last; b += 8) {
        int64_t count = std::min<int64_t>(8, last - b);
        for (int64_t column = 0; column < 8; column++) {
            uint64_t words[8] = {};
            for (int64_t row = 0; row < (back ? count : 8); row++)
                memcpy(words + row, from + (back ? N * (b + row) + 8 * column : (8 * row + column) * n + b),
                       back ? 8 : count);
            transpose(words);
            for (int64_t row = 0; row < (back ? 8 : count); row++)
                memcpy(to + (back ? (8 * row + column) * n + b : N * (b + row) + 8 * column), words + row,
                       back ? count : 8);
        }
    }
}

EXPORT int64_t lines(const uint8_t *tiles, int64_t n, uint8_t *blocks, int64_t threads) {
    parallel(n, 8, LEAST / N, threads, [=](int64_t i, int64_t last) { exchange<false>(tiles, n, blocks, i, last); });
    return 0;
}

EXPORT int64_t tiles(const uint8_t *blocks, int64_t n, uint8_t *tiles, int64_t threads) {
    parallel(n, 8, LEAST / N, threads, [=](int64_t i, int64_t last) { exchange<true>(blocks, n, tiles, i, last); });
    return 0;
}

// ---- sizes under many tables, as golden/jpegact/rice_sizes.py

struct Tables {  // of UNIT blocks: a byte for each, diagonal and k, or value
    uint8_t shorts[DIAGONALS][8][UNIT], third[DIAGONALS][8][UNIT], need[DIAGONALS][8][UNIT], lengths[N][UNIT];
};

// Fills `tables` of so many blocks, and `sums` of their folded values, int64 [64]. Returns how many of the blocks are not
// zero: the others are left out.
EXPORT int64_t rice_tables(const uint8_t *x, int64_t blocks, int64_t straight, Tables *tables, int64_t *sums, int64_t) {
    const uint8_t top = straight ? 2 : 3;
    int64_t used = 0;
    alignas(64) uint8_t u[N][UNIT] = {}, some[N][UNIT] = {};
    for (int64_t i = 0; i < blocks;) {
        int64_t count = 0;
        for (; i < blocks && count < UNIT; i++) {
            const uint8_t *block = x + N * i;
            uint64_t any = 0;
            for (int j = 0; j < 8; j++) any |= load64(block + 8 * j);
            if (any) {
                for (int v = 0; v < N; v++) u[v][count] = fold(block[v], straight);
                count++;
            }
        }
        for (int v = 0; v < N; v++) {
            uint8_t *lengths = tables->lengths[v];
            for (int64_t b = 0; b < count; b++) sums[v] += u[v][b];
            for (int64_t b = 0; b < UNIT; b++) {
                some[v][b] = straight && u[v][b];
                lengths[b] = straight ? 8 * (u[v][b] != 0) : length(u[v][b]);
            }
        }
        for (int d = 0; d < DIAGONALS; d++)
            for (int k = 0; k < 8; k++) {
                uint8_t shorts[UNIT] = {}, third[UNIT] = {}, rest[UNIT] = {};
                for (int row = std::max(0, d - 7); row <= std::min(7, d); row++) {
                    const uint8_t *of = u[7 * row + d], *are = some[7 * row + d];
                    for (int64_t b = 0; b < UNIT; b++) {
                        uint8_t quotient = uint8_t(of[b] - are[b]) >> k, c = std::min(quotient, top), kind = c + are[b];
                        shorts[b] += (kind > 0) + (kind > 1) + (straight ? (are[b] ? k : 0) : k);
                        third[b] += kind == 3;
                        rest[b] = std::max<uint8_t>(rest[b], quotient - c);
                    }
                }
                memcpy(tables->shorts[d][k], shorts, UNIT);
                memcpy(tables->third[d][k], third, UNIT);
                for (int64_t b = 0; b < UNIT; b++) tables->need[d][k][b] = length(rest[b]);
            }
        used += count, tables++;
    }
    return used;
}

// Bytes of the `used` blocks of these tables under another one, with k + e <= 8 for all k but the first.
EXPORT int64_t rice_total(const Tables *tables, int64_t used, int64_t word, int64_t) {
    Rice table(word);
    const uint8_t *e = table.e, first = 8 - table.k[0];
    int64_t total = 0;
    for (int64_t i = 0; i < used; i += UNIT, tables++) {
        alignas(64) uint8_t need[UNIT] = {}, third[UNIT] = {}, shown[UNIT] = {};
        alignas(64) uint16_t bits[UNIT] = {};
        const uint8_t *corner = tables->third[0][table.k[0]];
        for (int d = 0; d < DIAGONALS; d++) {
            uint8_t k = table.k[d < 8 ? d : 8 * (d - 7) + 7];
            const uint8_t *shorts = tables->shorts[d][k], *thirds = tables->third[d][k], *needs = tables->need[d][k];
            for (int64_t b = 0; b < UNIT; b++) bits[b] += shorts[b];
            for (int64_t b = 0; b < UNIT; b++) third[b] += thirds[b];
            for (int64_t b = 0; b < UNIT; b++) need[b] = need[b] < needs[b] ? needs[b] : need[b];
        }
        for (int64_t g = GROUPS - table.flags; g < GROUPS; g++) {
            uint8_t some[UNIT] = {};
            for (int64_t v = 4 * g; v < 4 * g + 4; v++) {
                const uint8_t *lengths = tables->lengths[v], k = table.k[v];
                for (int64_t b = 0; b < UNIT; b++) some[b] |= lengths[b] > k;
            }
            for (int64_t b = 0; b < UNIT; b++) shown[b] += some[b];
        }
        const uint8_t e0 = e[0], e1 = e[1], e2 = e[2], e3 = e[3];
        const uint16_t always = table.flags + 4 * (GROUPS - table.flags) + 7;
        uint16_t sizes[UNIT];
        for (int64_t b = 0; b < UNIT; b++) {
            uint8_t more = need[b] <= e0 ? e0 : need[b] <= e1 ? e1 : need[b] <= e2 ? e2 : e3;
            uint16_t all = bits[b] + more * (third[b] - corner[b]) + std::min(more, first) * corner[b];
            uint16_t bytes = uint16_t(all + always + 4 * shown[b]) >> 3;
            sizes[b] = 1 + (need[b] > e3 || bytes > Rice::MOST ? uint16_t(N) : bytes);
        }
        for (int64_t b = 0; b < std::min(UNIT, used - i); b++) total += sizes[b];
    }
    return total;
}
