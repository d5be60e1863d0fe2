// SFPR, DCT and quantization of 8x8 tiles (tiles.py, sfpr.py, dct.py, quantize.py; JPEG-ACT, sections III-B to III-E). Tiles
// lie side by side in the innermost loops, so that these are vectors.
#include "rows.h"

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

// A tensor in planes of `height` rows, which have a scale each, again from the first one after so many channels.
struct View {
    int64_t rows, width, height, channels;
    const float *scales;

    int64_t across() const { return (width + SIDE - 1) / SIDE; }  // tiles side by side
    int64_t blocks() const { return (rows + SIDE - 1) / SIDE * across(); }
};

// Tiles in their order, from one on.
class Cursor {
    const View view;
    int64_t row, column, line, channel;  // `line`: of the plane of the rows below
    float scales[SIDE];                  // of the tile's rows

    void begin_row() {
        for (float &scale : scales) {
            scale = view.scales[channel];
            if (++line < view.height) continue;
            line = 0;
            if (++channel == view.channels) channel = 0;
        }
    }

public:
    Cursor(const View &view, int64_t tile)
        : view(view), row(tile / view.across() * SIDE), column(tile % view.across() * SIDE), line(row % view.height),
          channel(row / view.height % view.channels) {
        begin_row();
    }

    // f(row, column, height, width, scales) of the next tile, and what of it is there.
    template <class F> void next(F f) {
        f(row, column, std::min(SIDE, view.rows - row), std::min(SIDE, view.width - column), scales);
        if ((column += SIDE) < view.width) return;
        column = 0, row += SIDE;
        begin_row();
    }
};

// Eight rows of a byte for each tile, as words of eight tiles, or, the other way round, a word of eight bytes of each tile.
typedef Squares<N / 8> Lines;

static inline uint8_t *word_of(Lines &lines, int64_t tile) {
    return reinterpret_cast<uint8_t *>(&lines[tile % 8]) + 8 * (tile / 8);
}

template <class Line> static inline void narrow(const int32_t (&from)[N], Line &line) {
    int8_t bytes[N];
    for (int64_t n = 0; n < N; n++) bytes[n] = from[n];
    memcpy(&line, bytes, sizeof bytes);
}

template <class Line> static inline void widen(const Line &line, int32_t (&to)[N]) {
    int8_t bytes[N];
    memcpy(bytes, &line, sizeof bytes);
    for (int64_t n = 0; n < N; n++) to[n] = bytes[n];
}

template <int way, bool lines>
static void encode_part(const Value *x, const View &view, bool signs, const int32_t *table, int8_t *q, int64_t first,
                        int64_t last) {
    const int64_t blocks = view.blocks();
    alignas(64) Tiles tiles;
    for (Cursor cursor(view, first); first < last; first += N) {
        const int64_t count = std::min(N, last - first);
        Lines rows[SIDE] = {};  // a row of a tile is a word
        for (int64_t n = 0; n < count; n++)
            cursor.next([&](int64_t row, int64_t column, int64_t high, int64_t wide, const float *scales) {
                const Value *from = x + row * view.width + column;
                Floats values[SIDE];
                if (high == SIDE && wide == SIDE) {
                    load_rows(from, view.width, values);
                } else {
                    Value part[SIDE * SIDE] = {};
                    for (int64_t i = 0; i < high; i++)
                        std::copy_n(from + i * view.width, wide, part + i * SIDE);
                    load_rows(part, SIDE, values);
                }
                for (int64_t i = 0; i < SIDE; i++) {
                    Row y = quantized(values[i], scales[i]);
                    if (signs) y = y == 0 & values[i] >= float_of(NORMAL) ? Row{} + 1 : y;
                    uint64_t word = narrowed(y);
                    memcpy(word_of(rows[i], n), &word, SIDE);
                }
            });
        for (int64_t i = 0; i < SIDE; i++) {
            transpose(rows[i]);
            for (int64_t j = 0; j < SIDE; j++) widen(rows[i][j], tiles[i][j]);
        }
        rows_pass<FIRST, false>(tiles);
        columns_pass<SECOND, false>(tiles);
        quantize<way>(tiles, table);
        for (int64_t j = 0; j < SIDE; j++) {
            Lines column;
            for (int64_t i = 0; i < SIDE; i++) narrow(tiles[i][j], column[i]);
            if (lines) transpose(column);
            for (int64_t n = 0; n < count && lines; n++)
                memcpy(q + 64 * (first + n) + SIDE * j, word_of(column, n), SIDE);
            for (int64_t i = 0; i < SIDE && !lines; i++) {
                int8_t *to = q + (SIDE * i + j) * blocks + first;
                if (count == N) memcpy(to, &column[i], N); else memcpy(to, &column[i], count);
            }
        }
    }
}

template <int way, bool lines>
static void decode_part(const int8_t *q, const View &view, const int32_t *table, Value *x, int64_t first, int64_t last) {
    const int64_t blocks = view.blocks();
    alignas(64) Tiles tiles;
    for (Cursor cursor(view, first); first < last; first += N) {
        const int64_t count = std::min(N, last - first);
        for (int64_t j = 0; j < SIDE; j++) {
            Lines column = {};
            for (int64_t n = 0; n < count && lines; n++)
                memcpy(word_of(column, n), q + 64 * (first + n) + SIDE * j, SIDE);
            if (lines) transpose(column);
            for (int64_t i = 0; i < SIDE; i++) {
                const int8_t *from = q + (SIDE * i + j) * blocks + first;
                if (!lines && count == N) memcpy(&column[i], from, N);
                else if (!lines) memcpy(&column[i], from, count);
                widen(column[i], tiles[i][j]);
            }
        }
        dequantize<way>(tiles, table);
        columns_pass<FIRST, true>(tiles);
        rows_pass<SECOND, true>(tiles);
        Lines rows[SIDE];
        for (int64_t i = 0; i < SIDE; i++) {
            for (int64_t j = 0; j < SIDE; j++) {  // half up would lift every pixel, so half of a row has half a step less
                int32_t pixels[N];
                for (int64_t n = 0; n < N; n++) pixels[n] = clamped((tiles[i][j][n] + (j < 4 ? 32 : 31)) >> 6, -128, 127);
                narrow(pixels, rows[i][j]);
            }
            transpose(rows[i]);
        }
        for (int64_t n = 0; n < count; n++)
            cursor.next([&](int64_t row, int64_t column, int64_t high, int64_t wide, const float *scales) {
                Value *to = x + row * view.width + column;
                Floats values[SIDE];
                for (int64_t i = 0; i < SIDE; i++)  // -128 times 0 would be -0.0
                    values[i] = __builtin_convertvector(widened(load64(word_of(rows[i], n))), Floats) * scales[i] + 0.0f;
                if (high == SIDE && wide == SIDE) return store_rows(values, view.width, to);
                Value part[SIDE * SIDE];
                store_rows(values, SIDE, part);
                for (int64_t i = 0; i < high; i++) std::copy_n(part + i * SIDE, wide, to + i * view.width);
            });
    }
}

// Calls f with constants.
template <class F> static void with_way(int64_t way, int64_t lines, F f) {
    auto of = [&](auto n) {
        if (lines) f(n, std::true_type());
        else f(n, std::false_type());
    };
    if (way == 0) of(std::integral_constant<int, 0>());
    else if (way == 1) of(std::integral_constant<int, 1>());
    else of(std::integral_constant<int, 2>());
}

// Quantized coefficients of values: int8 [64, blocks], or blocks in the CDU's order, column by column, if `lines`.
EXPORT int64_t encode(const Value *x, int64_t rows, int64_t width, int64_t height, int64_t channels, const float *k,
                      int64_t signs, int64_t way, int64_t lines, const int32_t *table, int8_t *q, int64_t threads) {
    std::vector<float> scales(k, k + channels);
    for (float &scale : scales) scale = finite_scale(scale);
    const View view{rows, width, height, channels, scales.data()};
    with_way(way, lines, [&](auto n, auto in_lines) {
        parallel(view.blocks(), N, LEAST / 64, threads, [=](int64_t first, int64_t last) {
            encode_part<n, in_lines>(x, view, signs, table, q, first, last);
        });
    });
    return 0;
}

// The reverse.
EXPORT int64_t decode(const int8_t *q, int64_t rows, int64_t width, int64_t height, int64_t channels, const float *r,
                      int64_t way, int64_t lines, const int32_t *table, Value *x, int64_t threads) {
    const View view{rows, width, height, channels, r};
    with_way(way, lines, [&](auto n, auto in_lines) {
        parallel(view.blocks(), N, LEAST / 64, threads, [=](int64_t first, int64_t last) {
            decode_part<n, in_lines>(q, view, table, x, first, last);
        });
    });
    return 0;
}
