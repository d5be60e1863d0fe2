// What the block codes share (blockcodes.cpp): bits, and tensors of blocks. A block is 64 bytes in the CDU's order;
// blocks of a payload follow each other, and what a first byte says is how long its block is.
#pragma once
#include "common.h"
#include <numeric>
#if defined(__BMI2__) || defined(__AVX2__)
#include <immintrin.h>
#endif

constexpr int64_t N = 64, GROUPS = 16, UNIT = 64;  // values of a block; blocks at a time
constexpr int64_t ROOM = 96;  // bytes: the longest block, and what is read or written behind it

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

// The same for a mask of the low bits of each byte.
static inline uint64_t picked_low(uint64_t x, uint64_t mask) {
#ifdef __BMI2__
    return _pext_u64(x, mask);
#else
    uint64_t out = 0;
    for (int i = 56; i >= 0; i -= 8) {
        uint64_t own = mask >> i & 255;
        out = out << __builtin_popcountll(own) | (x >> i & own);
    }
    return out;
#endif
}

static inline uint64_t spread_low(uint64_t x, uint64_t mask) {
#ifdef __BMI2__
    return _pdep_u64(x, mask);
#else
    uint64_t out = 0;
    for (int i = 0; i < 64; i += 8) {
        uint64_t own = mask >> i & 255;
        out |= (x & own) << i;
        x >>= __builtin_popcountll(own);
    }
    return out;
#endif
}

static inline uint8_t fold(uint8_t x, bool straight) { return straight ? x : uint8_t(x << 1) ^ uint8_t(int8_t(x) >> 7); }

static inline uint8_t unfold(uint8_t u, bool straight) { return straight ? u : uint8_t(u >> 1) ^ uint8_t(-(u & 1)); }

// Makes values of all of these u.
static inline void unfold_all(uint8_t *u, int64_t n, bool straight) {
    for (int64_t i = 0; i < n && !straight; i++) u[i] = unfold(u[i], false);
}

static inline bool is_zero(const uint8_t *x) {
    uint64_t any = 0;
    for (int i = 0; i < 8; i++) any |= load64(x + 8 * i);
    return !any;
}

constexpr uint64_t EACH = 0x0101010101010101;  // the lowest bit of each byte

// A bit for each of 64 bytes of 0 or 1.
static inline uint64_t bits_of(const uint8_t *bytes) {
    uint64_t bits = 0;
#if defined(__AVX512BW__)
    bits = _mm512_test_epi8_mask(_mm512_loadu_si512(bytes), _mm512_loadu_si512(bytes));
#elif defined(__AVX2__)
    for (int i = 0; i < 2; i++) {
        __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(bytes) + i);
        bits |= uint64_t(uint32_t(_mm256_movemask_epi8(_mm256_slli_epi16(some, 7)))) << 32 * i;
    }
#else
    for (int i = 0; i < 8; i++) bits |= (load64(bytes + 8 * i) * GATHER >> 56) << 8 * i;
#endif
    return bits;
}

// A bit for each of 64 bytes that is above its limit.
static inline uint64_t bits_above(const uint8_t *x, const uint8_t *limit) {
#ifdef __AVX512BW__
    return _mm512_cmpgt_epu8_mask(_mm512_loadu_si512(x), _mm512_loadu_si512(limit));
#else
    uint8_t above[N];
    for (int v = 0; v < N; v++) above[v] = x[v] > limit[v];
    return bits_of(above);
#endif
}

// The reverse, bytes of 0 or 255.
static inline void bytes_of(uint64_t bits, uint8_t *bytes) {
#if defined(__AVX512BW__)
    _mm512_storeu_si512(bytes, _mm512_movm_epi8(bits));
#elif defined(__AVX2__)
    const __m256i byte = _mm256_set_epi64x(3 * EACH, 2 * EACH, EACH, 0), bit = _mm256_set1_epi64x(0x8040201008040201);
    for (int i = 0; i < 2; i++) {
        __m256i some = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(bits >> 32 * i), byte), bit);
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(bytes) + i, _mm256_cmpeq_epi8(some, bit));
    }
#else
    for (int i = 0; i < 8; i++) {
        uint64_t some = spread(bits >> 8 * i & 255, EACH);
        some = (some << 8) - some;
        memcpy(bytes + 8 * i, &some, 8);
    }
#endif
}

// The bits of the halves of a word that a mask of the low ones picks, moved together; and the reverse.
static inline uint64_t picked_halves(uint64_t x, uint64_t mask) {
#ifdef __BMI2__
    return _pext_u64(x, mask);
#else
    return (x & uint32_t(mask)) | (x & mask) >> 32 << __builtin_popcount(uint32_t(mask));
#endif
}

static inline uint64_t spread_halves(uint64_t x, uint64_t mask) {
#ifdef __BMI2__
    return _pdep_u64(x, mask);
#else
    return (x & uint32_t(mask)) | (x >> __builtin_popcount(uint32_t(mask)) & mask >> 32) << 32;
#endif
}

// Fields of 64 bits at most, from the lowest bit of a byte on. Zeros fill the last byte, and eight bytes behind it may be
// written.
struct Writer {
    uint8_t *to;
    uint64_t rest = 0;  // of a byte that has so many bits
    int fill = 0;

    void put(uint64_t field, int width) {  // none above the width
        uint64_t word = rest | field << fill;
        memcpy(to, &word, 8);
        int bytes = (fill + width) >> 3;
        rest = bytes == 8 ? field >> 1 >> (63 - fill) : word >> 8 * bytes;
        to += bytes;
        fill = (fill + width) & 7;
    }
    void end() { *to = rest; }
};

struct Reader {
    const uint8_t *from;
    int64_t place = 0;

    uint64_t get(int width) {  // more than these bits
        const uint8_t *at = from + (place >> 3);
        int used = place & 7;
        place += width;
        return load64(at) >> used | uint64_t(at[8]) << 1 << (63 - used);
    }
};

// ---- tensors of n blocks by a code, which says what `step` there is from a first byte to the next one

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

// Writes the payload into so many bytes, and returns how many of them it has.
template <class Code> static int64_t encode(const Code &code, const uint8_t *x, int64_t n, uint8_t *payload,
                                            int64_t bytes, int64_t threads) {
    std::vector<int64_t> units = threads > 1 ? sizes(code, x, n, threads) : std::vector<int64_t>(1);
    std::exclusive_scan(units.begin(), units.end(), units.begin(), int64_t(0));
    int64_t size = 0;
    parallel(n, UNIT, LEAST / N, threads, [&](int64_t i, int64_t last) {
        uint8_t *to = payload + units[i / UNIT], *end = payload + (last < n ? units[last / UNIT] : bytes);
        for (; i < last; i++) {
            if (end - to >= ROOM) {
                to += code.encode(x + N * i, to);
            } else {  // what is behind the part is not its own
                uint8_t block[ROOM];
                int64_t size = code.encode(x + N * i, block);
                memcpy(to, block, size);
                to += size;
            }
        }
        if (last == n) size = to - payload;
    });
    return size;
}

template <class Code> static int64_t decode(const Code &code, const uint8_t *payload, int64_t bytes, int64_t n,
                                            uint8_t *x, int64_t threads) {
    std::vector<int64_t> units(n / UNIT + 1);
    int64_t place = 0;
    for (int64_t i = 0; i < n && threads > 1; i++) {
        if (i % UNIT == 0) units[i / UNIT] = place;
        place += code.step(payload[place]);
    }
    const uint8_t *end = payload + bytes;
    parallel(n, UNIT, LEAST / N, threads, [&](int64_t i, int64_t last) {
        const uint8_t *from = payload + units[i / UNIT];
        for (int64_t next; i < last; i = next) {
            next = std::min(i + UNIT, last);
            for (int64_t b = i; b < next; b++) {
                int64_t size = code.step(*from);
                if (end - from >= ROOM) {
                    code.decode(from, x + N * b);
                } else {
                    uint8_t block[ROOM] = {};
                    memcpy(block, from, size);
                    code.decode(block, x + N * b);
                }
                from += size;
            }
            code.finish(x + N * i, next - i);
        }
    });
    return 0;
}
