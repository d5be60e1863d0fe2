// MX (mx.py; OCP Microscaling Formats v1.0, section 5).
#include "common.h"
#include <cmath>

constexpr int64_t GROUP = 32;
constexpr uint32_t MAGNITUDE = 0x7FFFFFFF, NORMAL = 0x00800000, INFINITE = 0x7F800000, QUIET = 0x7FC00000;
constexpr int FRACTION = 23, BIAS = 127, NAN_SCALE = 255, BIAS64 = 1023, FRACTION64 = 52;

static inline double power(int64_t exponent) {
    int64_t bits = (exponent + BIAS64) << FRACTION64;
    double y;
    memcpy(&y, &bits, 8);
    return y;
}

// The scale of each of n groups; a fraction of the greatest value that is more than `above` rounds its exponent up. With
// `nans`, a group that has one has it in its scale.
EXPORT int64_t scales(const float *x, int64_t n, int64_t emax, int64_t above, int64_t nans, uint8_t *scale,
                      int64_t threads) {
    parallel(n, 1, LEAST / GROUP, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++) {
            uint32_t most = 0, all = 0;
            for (int64_t j = 0; j < GROUP; j++) {
                uint32_t bits = bits_of(x[i * GROUP + j]) & MAGNITUDE;
                most = std::max(most, bits >= NORMAL && bits < INFINITE ? bits : 0);
                all = std::max(all, bits);
            }
            int64_t exponent = int64_t(most >> FRACTION) - BIAS - emax + ((most & (NORMAL - 1)) > above);
            scale[i] = most ? std::min<int64_t>(std::max<int64_t>(exponent, -BIAS), BIAS) + BIAS : 0;
            if (nans && all > INFINITE) scale[i] = NAN_SCALE;
        }
    });
    return 0;
}

// Codes, a byte each. Magnitudes from `beyond` on are `largest`, infinite ones `infinity`; a NaN is `nan`, or, where that
// is below 0, all of its group are 0.
EXPORT int64_t encode(const float *x, int64_t n, const uint8_t *scale, int64_t exponent, int64_t mantissa, int64_t bias,
                      double beyond, int64_t largest, int64_t infinity, int64_t nan, uint8_t *codes, int64_t threads) {
    int64_t fraction = mantissa + bias - 1, sign = int64_t(1) << (exponent + mantissa);
    parallel(n, 1, LEAST / GROUP, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++) {
            double by = power(BIAS - scale[i]);
            bool none = nan < 0 && scale[i] == NAN_SCALE;
            for (int64_t j = i * GROUP; j < (i + 1) * GROUP; j++) {
                uint32_t word = bits_of(x[j]), bits = word & MAGNITUDE;
                double s = double(bits >= NORMAL && bits < INFINITE ? float_of(bits) : 0.0f) * by;
                int64_t octave = 0;
                if (exponent) octave = std::max<int64_t>(int64_t(load64(&s) >> FRACTION64) - BIAS64 - 1 + bias, 0);
                int64_t code = int64_t(__builtin_rint(s * power(fraction - octave))) + (octave << mantissa);
                code = s >= beyond ? largest : code;
                code = bits == INFINITE ? infinity : code;
                bool negative = word >> 31;
                code = exponent ? code | (negative ? sign : 0) : negative ? -code : code;
                code = nan >= 0 && bits > INFINITE ? nan : code;
                codes[j] = none ? 0 : code;
            }
        }
    });
    return 0;
}

// Values of codes, by those of all codes at a scale of 1.
EXPORT int64_t decode(const uint8_t *codes, int64_t n, const uint8_t *scale, const double *values, float *x,
                      int64_t threads) {
    parallel(n, 1, LEAST / GROUP, threads, [=](int64_t i, int64_t end) {
        for (; i < end; i++) {
            double by = power(int64_t(scale[i]) - BIAS);
            for (int64_t j = i * GROUP; j < (i + 1) * GROUP; j++) {
                uint32_t bits = bits_of(float(values[codes[j]] * by)), magnitude = bits & MAGNITUDE;
                bits = magnitude < NORMAL ? bits & ~MAGNITUDE : bits;
                x[j] = float_of(magnitude > INFINITE || scale[i] == NAN_SCALE ? QUIET : bits);
            }
        }
    });
    return 0;
}
