// SFPR (sfpr.py; JPEG-ACT, section III-B).
#include "common.h"

constexpr int64_t PART = 1 << 15;  // values of a row at a time

// f(row, first, last) for parts of all rows.
template <class F> static void pieces(int64_t rows, int64_t length, int64_t threads, F f) {
    int64_t columns = (length + PART - 1) / PART;
    parallel(rows * columns, 1, std::max<int64_t>(LEAST / std::min(length, PART), 1), threads,
             [=](int64_t i, int64_t end) {
        for (; i < end; i++) {
            int64_t first = i % columns * PART;
            f(i / columns, first, std::min(first + PART, length));
        }
    });
}

// Largest finite magnitude of some values, in its bits; says of a value that is not finite.
static uint32_t largest(const Value *x, int64_t n, bool &finite) {
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) most = std::max(most, bits_of(x[i]) & MAGNITUDE);
    if (most < INFINITE) return most;
    finite = false;
    most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(x[i]) & MAGNITUDE;
        most = std::max(most, bits < INFINITE ? bits : 0);
    }
    return most;
}

// k and r of each channel; returns whether neither NaN, Inf nor a subnormal number can matter.
EXPORT int64_t scales(const Value *x, int64_t rows, int64_t length, int64_t channels, double peak, double limit,
                      double floor, double smallest, double most_plain, float *k, float *r, int64_t threads) {
    int64_t columns = (length + PART - 1) / PART;
    std::vector<uint32_t> most(rows * columns);
    std::vector<uint8_t> finite(rows * columns);
    uint32_t *most_of = most.data();
    uint8_t *finite_of = finite.data();
    pieces(rows, length, threads, [=](int64_t row, int64_t first, int64_t last) {
        bool all = true;
        int64_t i = row * columns + first / PART;
        most_of[i] = largest(x + row * length + first, last - first, all);
        finite_of[i] = all;
    });
    bool plain = true;
    std::vector<uint32_t> of(channels);
    uint32_t top = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
        plain &= finite[i];
        uint32_t &one = of[i / columns % channels];
        one = std::max(one, most[i] < NORMAL ? 0 : most[i]);
        top = std::max(top, one);
    }
    float least = float_of(top) / float(limit);
    for (int64_t c = 0; c < channels; c++) {
        float own = float_of(of[c]);
        float y = std::max(std::max(own, least), float(floor));
        k[c] = own == 0 ? 0 : std::max<float>(Bfloat16(float(peak) / y), float(smallest));
        r[c] = k[c] == 0 ? 0 : 1 / k[c];
        plain &= k[c] <= float(most_plain);
    }
    return plain;
}

template <bool plain, bool signs> static void quantize_part(const Value *x, int64_t n, double k, int8_t *y) {
    const Saturation saturated;
    for (int64_t i = 0; i < n; i++) {
        float value = x[i];
        uint32_t bits = bits_of(value), magnitude = bits & MAGNITUDE;
        value = plain || (magnitude >= NORMAL && magnitude < INFINITE) ? value : 0.0f;
        int32_t rounded = int32_t(__builtin_rint(saturated(double(value) * k)));
        if (signs) rounded = rounded == 0 && value > 0 ? 1 : rounded;
        if (!plain) rounded = magnitude == INFINITE ? (bits >> 31 ? -128 : 127) : rounded;
        y[i] = rounded;
    }
}

// int8 values, half to even.
EXPORT int64_t quantize(const Value *x, int64_t rows, int64_t length, int64_t channels, const float *k, int64_t plain,
                        int64_t signs, int8_t *y, int64_t threads) {
    auto part = plain ? signs ? quantize_part<true, true> : quantize_part<true, false>
                      : signs ? quantize_part<false, true> : quantize_part<false, false>;
    pieces(rows, length, threads, [=](int64_t row, int64_t first, int64_t last) {
        int64_t i = row * length + first;
        part(x + i, last - first, k[row % channels], y + i);
    });
    return 0;
}

EXPORT int64_t dequantize(const int8_t *y, int64_t rows, int64_t length, int64_t channels, const float *r, Value *x,
                          int64_t threads) {
    pieces(rows, length, threads, [=](int64_t row, int64_t first, int64_t last) {
        float scale = r[row % channels];
        const int8_t *from = y + row * length;
        Value *to = x + row * length;
        for (int64_t i = first; i < last; i++) to[i] = Value(from[i] * scale + 0.0f);  // -128 times 0 would be -0.0
    });
    return 0;
}
