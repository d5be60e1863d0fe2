// MX (mx.py; OCP Microscaling Formats v1.0, section 5).
#include "common.h"

constexpr int64_t GROUP = 32;
constexpr int NAN_SCALE = 255;

static inline float power(int32_t exponent) { return float_of(uint32_t(exponent + BIAS) << FRACTION); }

// x times 2^exponent, in two halves: a power below 2^-126 would be a zero where subnormal numbers count as such.
struct Scaling {
    float half, rest;
    explicit Scaling(int32_t exponent) : half(power(exponent >> 1)), rest(power(exponent - (exponent >> 1))) {}
    float operator()(float x) const { return x * half * rest; }
};

// The scale of each of n groups; a fraction of the greatest value that is more than `above` rounds its exponent up. With
// `nans`, a group that has one has it in its scale.
EXPORT int64_t scales(const Value *x, int64_t n, int64_t emax, int64_t above, int64_t nans, uint8_t *scale,
                      int64_t threads) {
    parallel(n, 1, LEAST / GROUP, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++) {
            int32_t most = 0, all = 0;
            for (int64_t j = 0; j < GROUP; j++) {
                int32_t bits = bits_of(x[i * GROUP + j]) & MAGNITUDE;
                most = std::max(most, bits < int32_t(INFINITE) ? bits : 0);
                all = std::max(all, bits);
            }
            most = most < int32_t(NORMAL) ? 0 : most;
            int64_t exponent = int64_t(most >> FRACTION) - BIAS - emax + (int32_t(most & (NORMAL - 1)) > above);
            scale[i] = most ? std::min<int64_t>(std::max<int64_t>(exponent, -BIAS), BIAS) + BIAS : 0;
            if (nans && all > int32_t(INFINITE)) scale[i] = NAN_SCALE;
        }
    });
    return 0;
}

// Codes, a byte each. Magnitudes from `beyond` on are `largest`, infinite ones `infinity`; a NaN is `nan`, or, where that
// is below 0, all of its group are 0. What is exact in float32, or becomes 0 anyway, needs no float64.
template <bool floats> static void encode_part(const Value *x, int64_t i, int64_t end, const uint8_t *scale, int32_t width,
                                               int32_t mantissa, int32_t bias, float beyond, int32_t largest,
                                               int32_t infinity, int32_t nan, uint8_t *codes) {
    const int32_t fraction = mantissa + bias - 1, sign = 1 << width;
    for (; i < end; i++) {
        const Scaling by(BIAS - scale[i]);
        const int32_t none = nan < 0 && scale[i] == NAN_SCALE ? 0 : -1;
        for (int64_t j = i * GROUP; j < (i + 1) * GROUP; j++) {
            uint32_t word = bits_of(x[j]), bits = word & MAGNITUDE;
            float s = by(float_of(bits >= NORMAL && bits < INFINITE ? bits : 0));
            int32_t octave = floats ? std::max<int32_t>(int32_t(bits_of(s) >> FRACTION) - BIAS - 1 + bias, 0) : 0;
            int32_t code = int32_t(__builtin_rintf(s * power(fraction - octave))) + (octave << mantissa);
            code = s >= beyond ? largest : code;
            code = bits == INFINITE ? infinity : code;
            int32_t negative = int32_t(word) >> 31;
            code = floats ? code | (negative & sign) : (code ^ negative) - negative;
            code = nan >= 0 && bits > INFINITE ? nan : code;
            codes[j] = code & none;
        }
    }
}

EXPORT int64_t encode(const Value *x, int64_t n, const uint8_t *scale, int64_t exponent, int64_t mantissa, int64_t bias,
                      double beyond, int64_t largest, int64_t infinity, int64_t nan, uint8_t *codes, int64_t threads) {
    auto part = exponent ? encode_part<true> : encode_part<false>;
    parallel(n, 1, LEAST / GROUP, threads, [=](int64_t i, int64_t end) {
        part(x, i, end, scale, exponent + mantissa, mantissa, bias, beyond, largest, infinity, nan, codes);
    });
    return 0;
}

// Values of codes, by those of all codes at a scale of 1.
EXPORT int64_t decode(const uint8_t *codes, int64_t n, const uint8_t *scale, const float *values, Value *x,
                      int64_t threads) {
    parallel(n, 1, LEAST / GROUP, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++) {
            const Scaling by(int32_t(scale[i]) - BIAS);
            const bool none = scale[i] == NAN_SCALE;
            for (int64_t j = i * GROUP; j < (i + 1) * GROUP; j++) {
                uint32_t bits = bits_of(by(values[codes[j]])), magnitude = bits & MAGNITUDE;
                bits = magnitude < NORMAL ? bits & ~MAGNITUDE : bits;
                x[j] = Value(float_of(magnitude > INFINITE || none ? QUIET : bits));
            }
        }
    });
    return 0;
}
