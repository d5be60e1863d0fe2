// Gist's DPR (gist.py; Gist, section III-A).
#include "common.h"

struct Format {
    int exponent, mantissa;
    int width() const { return 1 + exponent + mantissa; }
    uint32_t base() const { return uint32_t(BIAS - ((1 << (exponent - 1)) - 1)) << mantissa; }
};

// The code of a value whose smallest and largest magnitudes, as codes without the base, are these.
static inline uint32_t code(Format form, uint32_t least, uint32_t most, float x) {
    int drop = FRACTION - form.mantissa;
    uint32_t bits = bits_of(x), magnitude = bits & MAGNITUDE;
    // ties to even, also into an octave
    uint32_t rounded = (magnitude + (magnitude >> drop & 1) + (1u << (drop - 1)) - 1) >> drop;
    uint32_t y = rounded < least ? 0 : std::min(rounded, most) - form.base();
    y = magnitude > INFINITE ? ((1u << form.exponent) - 1) << form.mantissa | 1u << (form.mantissa - 1) : y;
    return y | bits >> 31 << (form.width() - 1);
}

static inline float value(Format form, uint32_t code) {
    uint32_t magnitude = code & ((1u << (form.width() - 1)) - 1);
    uint32_t y = (magnitude + form.base()) << (FRACTION - form.mantissa);
    y = magnitude == 0 ? 0 : y;
    y = magnitude >> form.mantissa == (1u << form.exponent) - 1 ? QUIET : y;
    return float_of(y | (code >> (form.width() - 1) & 1) << 31);
}

// Codes in words of type T, `per` in each.
template <class T, int exponent, int mantissa>
static void encode(const Value *x, int64_t n, uint32_t least, uint32_t most, void *out, int64_t threads) {
    constexpr Format form{exponent, mantissa};
    constexpr int per = sizeof(T) == 4 ? 32 / (1 + exponent + mantissa) : 1;
    int64_t words = (n + per - 1) / per;
    parallel(words, 1, LEAST / per, threads, [=](int64_t i, int64_t end) {
        T *y = static_cast<T *>(out);
        for (; i < std::min(end, n / per); i++) {
            uint32_t word = 0;
            for (int j = 0; j < per; j++) word |= code(form, least, most, x[i * per + j]) << j * form.width();
            y[i] = word;
        }
        if (i < end) {
            uint32_t word = 0;
            for (int64_t j = 0; i * per + j < n; j++) word |= code(form, least, most, x[i * per + j]) << j * form.width();
            y[i] = word;
        }
    });
}

template <class T, int exponent, int mantissa>
static void decode(const void *data, int64_t n, Value *x, int64_t threads) {
    constexpr Format form{exponent, mantissa};
    constexpr int per = sizeof(T) == 4 ? 32 / (1 + exponent + mantissa) : 1;
    int64_t words = (n + per - 1) / per;
    parallel(words, 1, LEAST / per, threads, [=](int64_t i, int64_t end) {
        const T *y = static_cast<const T *>(data);
        for (; i < std::min(end, n / per); i++)
            for (int j = 0; j < per; j++) x[i * per + j] = Value(value(form, y[i] >> j * form.width()));
        if (i < end)
            for (int64_t j = 0; i * per + j < n; j++) x[i * per + j] = Value(value(form, y[i] >> j * form.width()));
    });
}

// Of a width of 8 bits a byte each, of 10 bits three in a word of 32, of 16 bits a word of 16.
EXPORT int64_t encode(const Value *x, int64_t n, int64_t width, int64_t least, int64_t most, void *out,
                      int64_t threads) {
    if (width == 8) encode<uint8_t, 4, 3>(x, n, least, most, out, threads);
    else if (width == 10) encode<uint32_t, 5, 4>(x, n, least, most, out, threads);
    else encode<uint16_t, 5, 10>(x, n, least, most, out, threads);
    return 0;
}

EXPORT int64_t decode(const void *data, int64_t n, int64_t width, Value *x, int64_t threads) {
    if (width == 8) decode<uint8_t, 4, 3>(data, n, x, threads);
    else if (width == 10) decode<uint32_t, 5, 4>(data, n, x, threads);
    else decode<uint16_t, 5, 10>(data, n, x, threads);
    return 0;
}
