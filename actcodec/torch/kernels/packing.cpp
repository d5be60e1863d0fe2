// Bits, and tensors without their zeros (packing.py).
#include "rows.h"
#include <atomic>

constexpr int64_t BLOCK = 512;

// Bits of a predicate, least significant first; returns how many are 1. Comparisons become bytes, and these become bits.
template <class T, class F> static int64_t pack_part(const T *x, int64_t n, uint8_t *out, F is) {
    int64_t count = 0;
    for (int64_t i = 0; i < n; i += BLOCK) {
        int64_t m = std::min(BLOCK, n - i);
        alignas(64) uint8_t flags[BLOCK] = {};
        if (m == BLOCK)
            for (int64_t j = 0; j < BLOCK; j++) flags[j] = is(x[i + j]);
        else
            for (int64_t j = 0; j < m; j++) flags[j] = is(x[i + j]);
        for (int64_t j = 0; j < (m + 7) / 8; j++) {
            uint8_t b = load64(flags + 8 * j) * GATHER >> 56;
            out[i / 8 + j] = b;
            count += __builtin_popcount(b);
        }
    }
    return count;
}

template <class T, class F> static int64_t pack(const void *x, int64_t n, uint8_t *out, int64_t threads, F is) {
    std::atomic<int64_t> count{0};
    parallel(n, BLOCK, LEAST, threads, [&, x](int64_t i, int64_t end) {
        count += pack_part(static_cast<const T *>(x) + i, end - i, out + i / 8, is);
    });
    return count;
}

// A type by its number in packing.py.
template <class F> static int64_t pack_any(const void *x, int64_t n, int64_t kind, uint8_t *out, int64_t threads, F is) {
    return kind == 0   ? pack<Value>(x, n, out, threads, is)
           : kind == 1 ? pack<int8_t>(x, n, out, threads, is)
           : kind == 2 ? pack<int16_t>(x, n, out, threads, is)
           : kind == 3 ? pack<uint8_t>(x, n, out, threads, is)
                       : pack<int32_t>(x, n, out, threads, is);
}

// Whether values are above 0.
EXPORT int64_t pack_positive(const void *x, int64_t n, int64_t kind, uint8_t *out, int64_t threads) {
    return pack_any(x, n, kind, out, threads, [](auto v) { return v > 0; });
}

// Whether they are above a number, or, with `nan`, are none.
EXPORT int64_t pack_above(const Value *x, int64_t n, double low, int64_t nan, uint8_t *out, int64_t threads) {
    const float least = low;
    return nan ? pack<Value>(x, n, out, threads, [least](auto v) { return !(v <= least); })
               : pack<Value>(x, n, out, threads, [least](auto v) { return v > least; });
}

// Whether they are not 0.
EXPORT int64_t pack_nonzero(const void *x, int64_t n, int64_t kind, uint8_t *out, int64_t threads) {
    return pack_any(x, n, kind, out, threads, [](auto v) { return v != 0; });
}

struct Spread {  // of a byte, eight bytes of 0 or 1
    uint64_t of[256];
    Spread() {
        for (int b = 0; b < 256; b++) {
            of[b] = 0;
            for (int i = 0; i < 8; i++) of[b] |= uint64_t(b >> i & 1) << 8 * i;
        }
    }
};
static const Spread SPREAD;

// Bytes of 0 or 1, of which there is room for a multiple of 8.
EXPORT int64_t unpack(const uint8_t *bits, int64_t bytes, uint8_t *out, int64_t threads) {
    parallel(bytes, 64, LEAST / 8, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++) memcpy(out + 8 * i, &SPREAD.of[bits[i]], 8);
    });
    return 0;
}

// The same as values, n of them.
EXPORT int64_t unpack_values(const uint8_t *bits, int64_t n, Value *out, int64_t threads) {
    parallel(n, 64, LEAST, threads, [=](int64_t i, int64_t end) {
        auto row = [=](int64_t i) { return __builtin_convertvector(((Row{} + bits[i / 8]) >> LANE) & 1, Floats); };
        for (; i + LANES <= end; i += LANES) store_row(row(i), out + i);
        for (int64_t j = 0; i + j < end; j++) out[i + j] = Value(row(i)[j]);
    });
    return 0;
}

static int64_t ones(const uint8_t *bits, int64_t bytes) {
    int64_t count = 0;
    for (int64_t i = 0; i < bytes; i++) count += __builtin_popcount(bits[i]);
    return count;
}

// A byte of bits says which of eight values there are; `values` points at the next one, and `end` behind the last.
template <class T> static inline const T *scatter8(uint8_t b, const T *values, const T *, T *out) {
    memset(out, 0, 8 * sizeof(T));
    for (; b; b &= b - 1) out[__builtin_ctz(b)] = *values++;
    return values;
}

template <class T> static inline T *gather8(uint8_t b, const T *x, T *values, const T *) {
    for (; b; b &= b - 1) *values++ = x[__builtin_ctz(b)];
    return values;
}

#ifdef __BMI2__
static inline const int8_t *scatter8(uint8_t b, const int8_t *values, const int8_t *end, int8_t *out) {
    if (end - values < 8) return scatter8<int8_t>(b, values, end, out);
    uint64_t x = _pdep_u64(load64(values), SPREAD.of[b] * 255);
    memcpy(out, &x, 8);
    return values + __builtin_popcount(b);
}

static inline int8_t *gather8(uint8_t b, const int8_t *x, int8_t *values, const int8_t *end) {
    if (end - values < 8) return gather8<int8_t>(b, x, values, end);
    uint64_t y = _pext_u64(load64(x), SPREAD.of[b] * 255);
    memcpy(values, &y, 8);
    return values + __builtin_popcount(b);
}
#endif

#ifdef __AVX512F__
static inline const int32_t *scatter8(uint8_t b, const int32_t *values, const int32_t *, int32_t *out) {
    _mm512_mask_storeu_epi32(out, 255, _mm512_maskz_expandloadu_epi32(b, values));
    return values + __builtin_popcount(b);
}

static inline int32_t *gather8(uint8_t b, const int32_t *x, int32_t *values, const int32_t *) {
    int count = __builtin_popcount(b);
    _mm512_mask_storeu_epi32(values, (1 << count) - 1, _mm512_maskz_compress_epi32(b, _mm512_maskz_loadu_epi32(255, x)));
    return values + count;
}
#endif

#if defined __AVX512VBMI2__ && defined __AVX512VL__
static inline const int16_t *scatter8(uint8_t b, const int16_t *values, const int16_t *, int16_t *out) {
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out), _mm_maskz_expandloadu_epi16(b, values));
    return values + __builtin_popcount(b);
}

static inline int16_t *gather8(uint8_t b, const int16_t *x, int16_t *values, const int16_t *) {
    int count = __builtin_popcount(b);
    const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i *>(x));
    _mm_mask_storeu_epi16(values, (1 << count) - 1, _mm_maskz_compress_epi16(b, all));
    return values + count;
}
#endif

template <class T> static int64_t gather(const void *from, int64_t n, const uint8_t *bits, void *to, int64_t threads) {
    const T *x = static_cast<const T *>(from);
    parallel(n, BLOCK, LEAST, threads, [=](int64_t i, int64_t last) {
        T *values = static_cast<T *>(to) + ones(bits, i / 8), *end = values + ones(bits + i / 8, (last - i + 7) / 8);
        for (; i + 8 <= last; i += 8) values = gather8(bits[i / 8], x + i, values, end);
        if (i < last) gather8<T>(bits[i / 8], x + i, values, end);
    });
    return 0;
}

// The values that bits stand for, of 1, 2 or 4 bytes.
EXPORT int64_t gather(const void *x, int64_t n, int64_t size, const uint8_t *bits, void *values, int64_t threads) {
    return size == 1   ? gather<int8_t>(x, n, bits, values, threads)
           : size == 2 ? gather<int16_t>(x, n, bits, values, threads)
                       : gather<int32_t>(x, n, bits, values, threads);
}

template <class T>
static int64_t scatter(const uint8_t *bits, const void *from, int64_t count, int64_t n, void *to, int64_t threads) {
    T *out = static_cast<T *>(to);
    const T *end = static_cast<const T *>(from) + count;
    parallel(n, BLOCK, LEAST, threads, [=](int64_t i, int64_t last) {
        const T *values = static_cast<const T *>(from) + ones(bits, i / 8);
        for (; i + 8 <= last; i += 8) values = scatter8(bits[i / 8], values, end, out + i);
        for (int64_t j = 0; i + j < last; j++) out[i + j] = bits[i / 8] >> j & 1 ? *values++ : 0;
    });
    return 0;
}

// The reverse: all values, zeros too.
EXPORT int64_t scatter(const uint8_t *bits, const void *values, int64_t count, int64_t n, int64_t size, void *out,
                       int64_t threads) {
    return size == 1   ? scatter<int8_t>(bits, values, count, n, out, threads)
           : size == 2 ? scatter<int16_t>(bits, values, count, n, out, threads)
                       : scatter<int32_t>(bits, values, count, n, out, threads);
}

template <int bits> static void pack_codes(const uint8_t *codes, int64_t n, uint8_t *out, int64_t threads) {
    constexpr int64_t per = 8 / bits;
    parallel((n + per - 1) / per, 1, LEAST / per, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++) {
            uint8_t byte = 0;
            for (int64_t j = 0; j < per && i * per + j < n; j++) byte |= codes[i * per + j] << bits * j;
            out[i] = byte;
        }
    });
}

// Codes of 1, 2, 4 or 8 bits, as many in a byte as fit.
EXPORT int64_t pack_codes(const uint8_t *codes, int64_t n, int64_t bits, uint8_t *out, int64_t threads) {
    auto pack = bits == 1 ? pack_codes<1> : bits == 2 ? pack_codes<2> : bits == 4 ? pack_codes<4> : pack_codes<8>;
    pack(codes, n, out, threads);
    return 0;
}

// The reverse.
EXPORT int64_t unpack_codes(const uint8_t *data, int64_t n, int64_t bits, uint8_t *codes, int64_t threads) {
    int64_t per = 8 / bits, mask = (1 << bits) - 1;
    parallel((n + per - 1) / per, 1, LEAST / per, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++)
            for (int64_t j = 0; j < per && i * per + j < n; j++) codes[i * per + j] = data[i] >> bits * j & mask;
    });
    return 0;
}
