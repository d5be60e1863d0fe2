// DCT and quantization of 8x8 tiles (tiles.py, dct.py, quantize.py; JPEG-ACT, sections III-C to III-E). Tiles lie side by
// side in the innermost loops, so that these are vectors.
#include "common.h"
#include <cmath>

constexpr int64_t SIDE = 8, N = 32;  // tiles at a time
constexpr int FRACTION_BITS = 6, FIRST = 8, SECOND = 11, RECIPROCAL_BITS = 19;
// sqrt(2) cos(j pi / 16), 11 fraction bits
constexpr int32_t K1 = 2841, K2 = 2676, K3 = 2408, K4 = 2048, K5 = 1609, K6 = 1108, K7 = 565;
typedef int32_t Tiles[SIDE][SIDE][N];

template <int drop> static inline int32_t rounded(int32_t total) { return (total + (1 << (drop - 1))) >> drop; }

static inline int32_t clamped(int32_t x, int32_t low, int32_t high) { return std::min(std::max(x, low), high); }

// The 8-point transform of what `at(i, n)` is, for all n; its inverse has brackets, each rounded, and then sums.
template <int drop, class F> static inline void forward(F at) {
    for (int64_t n = 0; n < N; n++) {
        int32_t s[4], d[4];
        for (int i = 0; i < 4; i++) s[i] = at(i, n) + at(7 - i, n), d[i] = at(i, n) - at(7 - i, n);
        int32_t outer = s[0] - s[3], inner = s[1] - s[2], ends = s[0] + s[3], middle = s[1] + s[2];
        at(0, n) = rounded<drop>(ends * K4 + middle * K4);
        at(4, n) = rounded<drop>(ends * K4 - middle * K4);
        at(2, n) = rounded<drop>(outer * K2 + inner * K6);
        at(6, n) = rounded<drop>(outer * K6 - inner * K2);
        at(1, n) = rounded<drop>(d[0] * K1 + d[1] * K3 + d[2] * K5 + d[3] * K7);
        at(3, n) = rounded<drop>(d[0] * K3 - d[1] * K7 - d[2] * K1 - d[3] * K5);
        at(5, n) = rounded<drop>(d[0] * K5 - d[1] * K1 + d[2] * K7 + d[3] * K3);
        at(7, n) = rounded<drop>(d[0] * K7 - d[1] * K5 + d[2] * K3 - d[3] * K1);
    }
}

template <int drop, class F> static inline void inverse(F at) {
    for (int64_t n = 0; n < N; n++) {
        int32_t c[8];
        for (int i = 0; i < 8; i++) c[i] = at(i, n);
        int32_t e0 = rounded<drop>(c[0] * K4 + c[4] * K4), e1 = rounded<drop>(c[0] * K4 - c[4] * K4);
        int32_t t0 = rounded<drop>(c[2] * K2 + c[6] * K6), t1 = rounded<drop>(c[2] * K6 - c[6] * K2);
        int32_t odd[4] = {rounded<drop>(c[1] * K1 + c[3] * K3 + c[5] * K5 + c[7] * K7),
                          rounded<drop>(c[1] * K3 - c[3] * K7 - c[5] * K1 - c[7] * K5),
                          rounded<drop>(c[1] * K5 - c[3] * K1 + c[5] * K7 + c[7] * K3),
                          rounded<drop>(c[1] * K7 - c[3] * K5 + c[5] * K3 - c[7] * K1)};
        int32_t sums[4] = {e0 + t0, e1 + t1, e1 - t1, e0 - t0};
        for (int i = 0; i < 4; i++) at(i, n) = sums[i] + odd[i], at(7 - i, n) = sums[i] - odd[i];
    }
}

template <int drop, bool back> static void rows_pass(Tiles &x) {  // along a row of each tile
    for (int64_t i = 0; i < SIDE; i++) {
        auto at = [&x, i](int64_t j, int64_t n) -> int32_t & { return x[i][j][n]; };
        if (back) inverse<drop>(at); else forward<drop>(at);
    }
}

template <int drop, bool back> static void columns_pass(Tiles &x) {
    for (int64_t j = 0; j < SIDE; j++) {
        auto at = [&x, j](int64_t i, int64_t n) -> int32_t & { return x[i][j][n]; };
        if (back) inverse<drop>(at); else forward<drop>(at);
    }
}

// By shifts, by divisors, or by steps in quarters: `way` 0, 1, 2, whose table has 64 numbers, or 64 of each of four.
template <int way> static void quantize(Tiles &x, const int32_t *table) {
    for (int64_t f = 0; f < 64; f++) {
        int32_t *c = x[f / 8][f % 8], t = table[f];
        if (way == 0) {
            int32_t drop = t + FRACTION_BITS, half = 1 << (drop - 1);
            for (int64_t n = 0; n < N; n++) c[n] = clamped((c[n] + half) >> drop, -128, 127);
        } else if (way == 1) {
            int32_t reciprocal = ((1 << RECIPROCAL_BITS) + t - 1) / t, half = t << (FRACTION_BITS - 1);
            for (int64_t n = 0; n < N; n++)
                c[n] = clamped((((c[n] + half) >> FRACTION_BITS) * reciprocal + (1 << 10)) >> RECIPROCAL_BITS, -128, 127);
        } else {
            int32_t reciprocal = table[64 + f], bits = table[128 + f], zone = table[192 + f];
            int32_t below = (8 + zone) << (bits - 4), above = (8 - zone) << (bits - 4);
            for (int64_t n = 0; n < N; n++) {
                int32_t v = c[n] >> (FRACTION_BITS - 1);
                c[n] = clamped((v * reciprocal + (v < 0 ? below : above)) >> bits, -128, 127);
            }
        }
    }
}

template <int way> static void dequantize(Tiles &x, const int32_t *table) {
    for (int64_t f = 0; f < 64; f++) {
        int32_t *c = x[f / 8][f % 8], t = table[f];
        for (int64_t n = 0; n < N; n++) {
            int32_t v = way == 0 ? c[n] << t : way == 1 ? c[n] * t : (c[n] * t + 2) >> 2;
            c[n] = clamped(v, -2048, 2047);
        }
    }
}

struct View {
    int64_t rows, width, across;  // `across`: tiles side by side
};

// f(tile, row, column, height, width) for each of N tiles from one on: its place, and what of it is there.
template <class F> static inline void places(const View &view, int64_t first, int64_t last, F f) {
    int64_t row = first / view.across * SIDE, column = first % view.across * SIDE;
    for (int64_t n = 0; n < last - first; n++) {
        f(n, row, column, std::min(SIDE, view.rows - row), std::min(SIDE, view.width - column));
        column += SIDE;
        if (column >= view.width) column = 0, row += SIDE;
    }
}

template <int way> static void transform_part(const int8_t *y, View view, const int32_t *table, int8_t *q,
                                              int64_t blocks, int64_t first, int64_t last) {
    alignas(64) Tiles x;
    for (; first < last; first += N) {
        int64_t count = std::min(N, last - first);
        Squares<N / 8> rows[SIDE] = {};  // a row of a tile is a word
        places(view, first, first + count, [&](int64_t n, int64_t row, int64_t column, int64_t high, int64_t wide) {
            const int8_t *from = y + row * view.width + column;
            if (high == SIDE && wide == SIDE)
                for (int64_t i = 0; i < SIDE; i++) memcpy(&rows[i][n % 8][n / 8], from + i * view.width, SIDE);
            else
                for (int64_t i = 0; i < high; i++) memcpy(&rows[i][n % 8][n / 8], from + i * view.width, wide);
        });
        for (int64_t i = 0; i < SIDE; i++) {
            int8_t values[SIDE][N];
            transpose<N / 8>(rows[i]);
            memcpy(values, rows[i], sizeof values);
            for (int64_t j = 0; j < SIDE; j++)
                for (int64_t n = 0; n < N; n++) x[i][j][n] = values[j][n];
        }
        rows_pass<FIRST, false>(x);
        columns_pass<SECOND, false>(x);
        quantize<way>(x, table);
        for (int64_t f = 0; f < 64; f++) {
            int8_t *to = q + f * blocks + first;
            const int32_t *from = x[f / 8][f % 8];
            if (count == N)
                for (int64_t n = 0; n < N; n++) to[n] = from[n];
            else
                for (int64_t n = 0; n < count; n++) to[n] = from[n];
        }
    }
}

template <int way> static void restore_part(const int8_t *q, View view, const int32_t *table, int8_t *y,
                                            int64_t blocks, int64_t first, int64_t last) {
    alignas(64) Tiles x;
    for (; first < last; first += N) {
        int64_t count = std::min(N, last - first);
        for (int64_t f = 0; f < 64; f++) {
            const int8_t *from = q + f * blocks + first;
            int32_t *to = x[f / 8][f % 8];
            if (count == N)
                for (int64_t n = 0; n < N; n++) to[n] = from[n];
            else
                for (int64_t n = 0; n < N; n++) to[n] = n < count ? from[n] : 0;
        }
        dequantize<way>(x, table);
        columns_pass<FIRST, true>(x);
        rows_pass<SECOND, true>(x);
        Squares<N / 8> rows[SIDE];
        for (int64_t i = 0; i < SIDE; i++) {
            int8_t pixels[SIDE][N];
            for (int64_t j = 0; j < SIDE; j++)  // half up would lift every pixel, so half of a row has half a step less
                for (int64_t n = 0; n < N; n++) pixels[j][n] = clamped((x[i][j][n] + (j < 4 ? 32 : 31)) >> 6, -128, 127);
            memcpy(rows[i], pixels, sizeof pixels);
            transpose<N / 8>(rows[i]);
        }
        places(view, first, first + count, [&](int64_t n, int64_t row, int64_t column, int64_t high, int64_t wide) {
            int8_t *to = y + row * view.width + column;
            if (high == SIDE && wide == SIDE)
                for (int64_t i = 0; i < SIDE; i++) memcpy(to + i * view.width, &rows[i][n % 8][n / 8], SIDE);
            else
                for (int64_t i = 0; i < high; i++) memcpy(to + i * view.width, &rows[i][n % 8][n / 8], wide);
        });
    }
}

// Has `part` do all tiles, in threads.
template <class Part> static int64_t tiles(const int8_t *from, int64_t rows, int64_t width, Part part,
                                           const int32_t *table, int8_t *to, int64_t threads) {
    View view{rows, width, (width + SIDE - 1) / SIDE};
    int64_t blocks = (rows + SIDE - 1) / SIDE * view.across;
    parallel(blocks, N, LEAST / 64, threads,
             [=](int64_t first, int64_t last) { part(from, view, table, to, blocks, first, last); });
    return 0;
}

// Quantized coefficients, int8 [64, blocks], of flat values.
EXPORT int64_t transform(const int8_t *y, int64_t rows, int64_t width, int64_t way, const int32_t *table, int8_t *q,
                         int64_t threads) {
    auto part = way == 0 ? transform_part<0> : way == 1 ? transform_part<1> : transform_part<2>;
    return tiles(y, rows, width, part, table, q, threads);
}

// The reverse.
EXPORT int64_t restore(const int8_t *q, int64_t rows, int64_t width, int64_t way, const int32_t *table, int8_t *y,
                       int64_t threads) {
    auto part = way == 0 ? restore_part<0> : way == 1 ? restore_part<1> : restore_part<2>;
    return tiles(q, rows, width, part, table, y, threads);
}
