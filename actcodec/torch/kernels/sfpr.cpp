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

// Largest finite magnitude of some values, in its bits.
static uint32_t largest(const Value *x, int64_t n) {
    uint32_t most = 0;
    for (int64_t i = 0; i < n; i++) most = std::max(most, bits_of(x[i]) & MAGNITUDE);
    if (most < INFINITE) return most;
    most = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = bits_of(x[i]) & MAGNITUDE;
        most = std::max(most, bits < INFINITE ? bits : 0);
    }
    return most;
}

// k and r of each channel.
EXPORT int64_t scales(const Value *x, int64_t rows, int64_t length, int64_t channels, double peak, double limit,
                      double floor, double smallest, float *k, float *r, int64_t threads) {
    int64_t columns = (length + PART - 1) / PART;
    std::vector<uint32_t> most(rows * columns);
    uint32_t *most_of = most.data();
    pieces(rows, length, threads, [=](int64_t row, int64_t first, int64_t last) {
        most_of[row * columns + first / PART] = largest(x + row * length + first, last - first);
    });
    std::vector<uint32_t> of(channels);
    uint32_t top = 0;
    for (int64_t i = 0; i < rows * columns; i++) {
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
    }
    return 0;
}

// The sum of a product and INTEGER whose integer 8 bits hold, nearest to one. Bounds are variables to a compiler, as it
// would make branches of constants, and no minimum and maximum of vectors; a loop has its own copy, which no store can
// change.
inline float LEAST_OF_8 = INTEGER - 128, MOST_OF_8 = INTEGER + 127;
struct Saturation {
    float low = LEAST_OF_8, high = MOST_OF_8;
    float operator()(float x) const {
        x = low > x ? low : x;
        return high < x ? high : x;
    }
};

// Half to even. No number that is not normal but infinity is other than 0.
static inline int8_t quantized(float x, float k, bool signs, const Saturation &saturated) {
    float value = (bits_of(x) & MAGNITUDE) - NORMAL <= INFINITE - NORMAL ? x : 0.0f;
    int8_t y = bits_of(saturated(nearest(value, k)));
    return signs && y == 0 && value > 0 ? 1 : y;
}

EXPORT int64_t quantize(const Value *x, int64_t rows, int64_t length, int64_t channels, const float *k, int64_t signs,
                        int8_t *y, int64_t threads) {
    const Saturation saturated;
    pieces(rows, length, threads, [=](int64_t row, int64_t first, int64_t last) {
        const float scale = finite_scale(k[row % channels]);
        const Value *from = x + row * length;
        int8_t *to = y + row * length;
        if (signs)
            for (int64_t i = first; i < last; i++) to[i] = quantized(from[i], scale, true, saturated);
        else
            for (int64_t i = first; i < last; i++) to[i] = quantized(from[i], scale, false, saturated);
    });
    return 0;
}

EXPORT int64_t dequantize(const int8_t *y, int64_t rows, int64_t length, int64_t channels, const float *r, Value *x,
                          int64_t threads) {
    pieces(rows, length, threads, [=](int64_t row, int64_t first, int64_t last) {
        const float scale = r[row % channels];
        const int8_t *from = y + row * length;
        Value *to = x + row * length;
        for (int64_t i = first; i < last; i++) to[i] = Value(from[i] * scale + 0.0f);  // -128 times 0 would be -0.0
    });
    return 0;
}
