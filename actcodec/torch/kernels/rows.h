// Rows of eight values, and blocks of eight rows, as vectors.
#pragma once
#include "common.h"
#if defined(__BMI2__) || defined(__AVX2__)
#include <immintrin.h>
#endif

constexpr auto smaller = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto larger = [](auto a, auto b) { return a > b ? a : b; };

// Of all lanes, by a function of two.
template <class V, class F> static inline auto all(V x, F f) {
    typedef std::decay_t<decltype(x[0])> One;
    typedef One Half __attribute__((vector_size(sizeof x / 2)));
    Half half[2];
    memcpy(half, &x, sizeof half);
    Half y = f(half[0], half[1]);
    return f(f(One(y[0]), One(y[1])), f(One(y[2]), One(y[3])));  // an element has no reference in Clang
}

// Eight values in memory, of any type.
typedef uint16_t Halves __attribute__((vector_size(2 * LANES)));

template <class V> static inline Floats load_row(const V *x) {
    Halves codes;
    memcpy(&codes, x, sizeof codes);
    return float_of(V::widened(__builtin_convertvector(codes, Words)));
}

static inline Floats load_row(const float *x) {
    Floats row;
    memcpy(&row, x, sizeof row);
    return row;
}

template <class V> static inline void store_row(Floats row, V *x) {
    Halves codes = __builtin_convertvector(V::narrowed(bits_of(row)), Halves);
    memcpy(x, &codes, sizeof codes);
}

static inline void store_row(Floats row, float *x) { memcpy(x, &row, sizeof row); }

#ifdef __F16C__
static inline Floats load_row(const Float16 *x) {
    Halves codes;
    memcpy(&codes, x, sizeof codes);
    const Words wide = same_bits<Words>(_mm256_cvtph_ps(same_bits<__m128i>(codes)));  // in which all NaN are quiet
    const Words code = __builtin_convertvector(codes, Words), quiet = (~code & 0x200) << Float16::DROP;
    return float_of((code & 0x7C00) == 0 ? wide : wide & ~quiet);
}

static inline void store_row(Floats row, Float16 *x) {
    const __m128i codes = _mm256_cvtps_ph(same_bits<__m256>(row), _MM_FROUND_TO_NEAREST_INT);
    memcpy(x, &codes, sizeof codes);
}
#endif

// Rows so many values apart.
template <size_t n> static inline void load_rows(const Value *x, int64_t step, Floats (&rows)[n]) {
    for (size_t i = 0; i < n; i++) rows[i] = load_row(x + i * step);
}

template <size_t n> static inline void store_rows(const Floats (&rows)[n], int64_t step, Value *x) {
    for (size_t i = 0; i < n; i++) store_row(rows[i], x + i * step);
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
