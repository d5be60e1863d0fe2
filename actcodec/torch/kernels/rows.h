// Rows of eight values, and blocks of eight rows, as vectors.
#pragma once
#include "common.h"
#ifdef __AVX2__
#include <immintrin.h>
#endif

constexpr int64_t LANES = 8;
typedef int32_t Row __attribute__((vector_size(4 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));
typedef float Floats __attribute__((vector_size(4 * LANES)));

template <class To, class From> static inline To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

constexpr auto smaller = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto larger = [](auto a, auto b) { return a > b ? a : b; };

// Of all lanes, by a function of two.
template <class V, class F> static inline auto all(V x, F f) {
    typedef std::decay_t<decltype(x[0])> Half __attribute__((vector_size(sizeof x / 2)));
    Half half[2];
    memcpy(half, &x, sizeof half);
    Half y = f(half[0], half[1]);
    return f(f(y[0], y[1]), f(y[2], y[3]));
}

// Rows so many values apart. One row of 16 bits would make vectors of four values.
template <size_t n> static inline void load_rows(const Value *x, int64_t step, Floats (&rows)[n]) {
    if (sizeof(Value) == sizeof(float)) {
        for (size_t i = 0; i < n; i++) memcpy(&rows[i], x + i * step, sizeof rows[i]);
    } else {
        Value values[n * LANES];
        float wide[n * LANES];
        for (size_t i = 0; i < n; i++) memcpy(values + i * LANES, x + i * step, LANES * sizeof(Value));
        for (size_t i = 0; i < n * LANES; i++) wide[i] = values[i];
        memcpy(rows, wide, sizeof rows);
    }
}

template <size_t n> static inline void store_rows(const Floats (&rows)[n], int64_t step, Value *x) {
    if (sizeof(Value) == sizeof(float)) {
        for (size_t i = 0; i < n; i++) memcpy(x + i * step, &rows[i], sizeof rows[i]);
    } else {
        Value values[n * LANES];
        float wide[n * LANES];
        memcpy(wide, rows, sizeof wide);
        for (size_t i = 0; i < n * LANES; i++) values[i] = Value(wide[i]);
        for (size_t i = 0; i < n; i++) memcpy(x + i * step, values + i * LANES, LANES * sizeof(Value));
    }
}

// 0 for values that are subnormal, no number or, unless they may be, infinite.
static inline Floats normal(Floats x, bool infinite = false) {
    Words above = (same_bits<Words>(x) & MAGNITUDE) - NORMAL;
    return same_bits<Floats>(same_bits<Row>(x) & (above < INFINITE - NORMAL + infinite));
}

// The nearest integers of products.
static inline Row nearest(Floats x, float k) {
    for (int64_t j = 0; j < LANES; j++) x[j] = nearest(x[j], k);
    return same_bits<Row>(x) - int32_t(bits_of(INTEGER));
}

// Those that 8 bits hold, of infinity as well.
static inline Row quantized(Floats x, float k) {
    return smaller(larger(nearest(normal(x, true), k), Row{} - 128), Row{} + 127);
}

// Eight bytes, a word.
static inline Row widened(uint64_t bytes) {
#ifdef __AVX2__
    return same_bits<Row>(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes)));
#else
    Row row;
    for (int64_t j = 0; j < LANES; j++) row[j] = int8_t(bytes >> 8 * j);
    return row;
#endif
}

static inline uint64_t narrowed(Row row) {
#ifdef __AVX512VL__
    return _mm_cvtsi128_si64(_mm256_cvtepi32_epi8(same_bits<__m256i>(row)));
#else
    uint64_t bytes = 0;
    for (int64_t j = 0; j < LANES; j++) bytes |= uint64_t(uint8_t(row[j])) << 8 * j;
    return bytes;
#endif
}
