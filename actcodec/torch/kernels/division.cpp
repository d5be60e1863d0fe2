// DIVISION (division.py; DIVISION, sections 4.1 and 4.2).
#include "common.h"
#include <cmath>
#include <numeric>
#include <tuple>
#ifdef __BMI2__
#include <immintrin.h>
#endif

constexpr int64_t LANES = 8, GROUP = 4, AT_ONCE = 16;  // groups whose noise is made together
constexpr uint64_t LANE = 0x0808181810100000, EACH = 0x0101010101010101;  // bytes: what lanes differ by
constexpr int LOG2[9] = {0, 0, 1, 1, 2, 2, 2, 2, 3};

// Golden's view, and what is a plane there.
struct View {
    bool tiled;
    int64_t rows, width, height, sectors, tail;

    View(int64_t tiled, int64_t rows, int64_t width, int64_t height)
        : tiled(tiled), rows(rows), width(width), height(height), sectors((width + LANES - 1) / LANES),
          tail(width - LANES * (sectors - 1)) {}

    int64_t blocks() const { return (rows * sectors + LANES - 1) / LANES; }

    // Of segments in front of a sector of memory order, which is a multiple of 8, or behind the last one.
    int64_t segments(int64_t sector) const {
        auto up = [](int64_t n, int64_t d) { return (n + d - 1) / d; };
        if (tiled) return sector / LANES;
        return up(sector, LANES) + up(sector, sectors) - up(sector, std::lcm(sectors, LANES));
    }
};

// Rows of a block with the same average.
struct Segment {
    int64_t plane, begin, count;  // of the rows of its block
    const View &view;
    int64_t row, sector;  // of its first row, in the view
    int a, c;             // the average is over 2^a rows and 2^c columns

    int64_t place(int64_t i) const {
        return view.tiled ? (row + i) * view.width + sector * LANES : row * view.width + (sector + i) * LANES;
    }
    int64_t values(int64_t i) const {
        return (view.tiled ? sector : sector + i) == view.sectors - 1 ? view.tail : LANES;
    }
};

template <class F> static void segments_of(const View &view, int64_t block, F f) {
    if (view.tiled) {
        int64_t row = block / view.sectors * LANES, sector = block % view.sectors;
        int c = LOG2[sector == view.sectors - 1 ? view.tail : LANES];
        f(Segment{row / view.height, 0, LANES, view, row, sector, 3, c});
        return;
    }
    int64_t last = std::min((block + 1) * LANES, view.rows * view.sectors);
    for (int64_t g = block * LANES; g < last;) {
        int64_t row = g / view.sectors, end = std::min(last, (row + 1) * view.sectors);
        int64_t whole = end - g - (end % view.sectors == 0 && view.tail < LANES);
        f(Segment{row / view.height, g % LANES, end - g, view, row, g % view.sectors, LOG2[whole],
                  whole ? 3 : LOG2[view.tail]});
        g = end;
    }
}

static inline float normal(float x) {
    uint32_t magnitude = bits_of(x) & MAGNITUDE;
    return magnitude >= NORMAL && magnitude < INFINITE ? x : 0.0f;
}

// Smallest and largest integer of a segment, and what is taken off, before rounding, in 64ths.
struct Range {
    int32_t low, high, level;
};

// Integers of a segment's rows by a function of its values, and their range.
template <class F>
static inline Range rounded(const Segment &segment, const Value *x, bool lfc, bool least, int32_t *y, F integer) {
    int32_t low = INT32_MAX, high = INT32_MIN, sum = 0;
    if (segment.a == 3 && segment.c == 3) {  // a whole tile, or as many values that follow each other
        const Value *from = x + segment.place(0);
        const int64_t step = segment.view.tiled ? segment.view.width : LANES;
        if (sizeof(Value) == sizeof(float)) {
            for (int64_t i = 0; i < LANES; i++)
                for (int64_t j = 0; j < LANES; j++) y[i * LANES + j] = integer(from[i * step + j]);
        } else {  // a row of 16 bits alone would make vectors of four values
            Value values[LANES * LANES];
            for (int64_t i = 0; i < LANES; i++)
                memcpy(values + i * LANES, from + i * step, LANES * sizeof(Value));
            for (int64_t i = 0; i < LANES * LANES; i++) y[i] = integer(values[i]);
        }
        for (int64_t i = 0; i < LANES * LANES; i++) {
            low = std::min(low, y[i]);
            high = std::max(high, y[i]);
            sum += y[i];
        }
    } else {
        for (int64_t i = 0; i < segment.count; i++) {
            const Value *from = x + segment.place(i);
            int32_t *to = y + i * LANES;
            int64_t n = segment.values(i), front = i >> segment.a ? 0 : 1 << segment.c;
            if (n == LANES)
                for (int64_t j = 0; j < LANES; j++) to[j] = integer(from[j]);
            else
                for (int64_t j = 0; j < n; j++) to[j] = integer(from[j]);
            for (int64_t j = 0; j < n; j++) {
                low = std::min(low, to[j]);
                high = std::max(high, to[j]);
                sum += j < front ? to[j] : 0;
            }
        }
    }
    return {low, high, lfc ? least ? low << 6 : sum << (6 - segment.a - segment.c) : 0};
}

// A plane's extremes of x * scale, rounded, less the level of its segment; in 64ths, before that is rounded, if fine.
static void extremes(const Value *x, const View &view, int64_t first, int64_t last, int64_t plane, double scale,
                     bool least, bool fine, int32_t &low, int32_t &high) {
    low = INT32_MAX, high = INT32_MIN;
    for (int64_t b = first; b < last; b++) {
        segments_of(view, b, [&](const Segment &segment) {
            if (segment.plane != plane) return;
            int32_t y[LANES * LANES];
            Range r = rounded(segment, x, true, least, y,
                              [=](float v) { return int32_t(__builtin_rint(double(normal(v)) * scale)); });
            int32_t level = fine ? r.level : (r.level + 32) >> 6, unit = fine ? 64 : 1;
            low = std::min(low, r.low * unit - level);
            high = std::max(high, r.high * unit - level);
        });
    }
}

// Smallest and largest of some values.
static std::pair<float, float> ends_of(const Value *x, int64_t n) {
    constexpr int64_t WIDE = 32;  // of as many sequences: a compiler may not reorder them itself
    float low[WIDE], high[WIDE];
    for (int64_t j = 0; j < WIDE; j++) low[j] = high[j] = normal(x[0]);
    int64_t i = 0;
    for (; i + WIDE <= n; i += WIDE)
        for (int64_t j = 0; j < WIDE; j++) {
            float v = normal(x[i + j]);
            low[j] = v < low[j] ? v : low[j];
            high[j] = v > high[j] ? v : high[j];
        }
    for (; i < n; i++) {
        low[0] = std::min<float>(low[0], normal(x[i]));
        high[0] = std::max<float>(high[0], normal(x[i]));
    }
    return {*std::min_element(low, low + WIDE), *std::max_element(high, high + WIDE)};
}

// k and delta of each plane, as golden's table.
EXPORT int64_t fit(const Value *x, int64_t tiled, int64_t rows, int64_t width, int64_t height, int64_t bits,
                   int64_t lfc, int64_t least, double most, float *k, int8_t *delta, int64_t threads) {
    View view(tiled, rows, width, height);
    int64_t size = height * width, span = 64 - (1 << (6 - bits)), top = 128 - (1 << (6 - bits));
    parallel(rows / height, 1, std::max<int64_t>(LEAST / size, 1), threads, [=](int64_t plane, int64_t end) {
        for (; plane < end; plane++) {
            double smallest, greatest;
            std::tie(smallest, greatest) = ends_of(x + plane * size, size);
            double largest = std::max(-smallest, greatest);
            int exponent;
            frexp(largest, &exponent);
            double scale = ldexp(1.0, 15 - exponent);
            int64_t sector = plane * height * view.sectors;  // flat, of its first block others may have a part
            int64_t first = sector / LANES, last = (sector + height * view.sectors + LANES - 1) / LANES;
            auto ends = [&](double by, bool fine, int32_t &low, int32_t &high) {
                if (lfc) return extremes(x, view, first, last, plane, by, least, fine, low, high);
                low = int32_t(__builtin_rint(smallest * by)) * (fine ? 64 : 1);  // rounding keeps the order
                high = int32_t(__builtin_rint(greatest * by)) * (fine ? 64 : 1);
            };
            int32_t low, high;
            ends(scale, true, low, high);
            double one = high == low ? INFINITY : span * 64 * scale / double(high - low);
            double other = largest == 0 ? INFINITY : top / largest;
            double fitted = std::min(std::min(one, other), most);
            uint64_t word = load64(&fitted) & ~((uint64_t(1) << 45) - 1);  // down to a bfloat16
            memcpy(&fitted, &word, 8);
            float own = largest == 0 ? 0 : float(fitted);
            for (;; own = float_of(bits_of(own) - (1 << 16))) {
                ends(own, false, low, high);
                if (high - low <= span) break;
            }
            k[plane] = own;
            delta[plane] = std::max(low, -128);
        }
    });
    return 0;
}

static inline uint32_t rotated(uint32_t x, int left) { return (x << left | x >> (16 - left)) & 0xFFFF; }

static uint32_t mixed(uint32_t seed, uint32_t group) {
    uint32_t keys[2] = {seed & 0xFFFF, seed >> 16}, a = group >> 16, b = group & 0xFFFF;
    for (int i = 0; i < 8; i++) {
        a = ((rotated(a, 9) + b) & 0xFFFF) ^ keys[i % 2];
        b = rotated(b, 2) ^ a;
    }
    return a << 16 | b;
}

static inline int32_t quantized(float x, double k, const Saturation &saturated) {
    int32_t rounded = int32_t(__builtin_rint(saturated(double(normal(x)) * k)));
    return (bits_of(x) & MAGNITUDE) == INFINITE ? x < 0 ? -128 : 127 : rounded;
}

// Calls f with a constant.
template <class F> static void with_bits(int64_t bits, F f) {
    if (bits == 1) f(std::integral_constant<int, 1>());
    else if (bits == 2) f(std::integral_constant<int, 2>());
    else f(std::integral_constant<int, 4>());
}

// Eight codes, the first one lowest.
template <int bits> static inline uint32_t packed(const uint8_t *code) {
#ifdef __BMI2__
    return _pext_u64(load64(code), ((1 << bits) - 1) * 0x0101010101010101);
#else
    uint32_t word = 0;
    for (int64_t j = 0; j < LANES; j++) word |= uint32_t(code[j]) << (bits * j);
    return word;
#endif
}

// How many segments there are.
EXPORT int64_t segments(int64_t tiled, int64_t rows, int64_t width, int64_t height, int64_t) {
    View view(tiled, rows, width, height);
    return view.segments(rows * view.sectors);
}

// What is added to the values of blocks before truncation, from a block on, which is the first of its group. Numbers of a
// group follow each other, so that those of several groups take turns.
template <int bits> static void noise(int64_t block, uint32_t seed, bool nearest, uint64_t (*rows)[GROUP * LANES]) {
    uint32_t state[AT_ONCE];
    for (int64_t g = 0; g < AT_ONCE; g++) state[g] = mixed(seed, block / GROUP + g) | 1;
    for (int64_t i = 0; i < GROUP * LANES; i++)
        for (int64_t g = 0; g < AT_ONCE; g++) {
            uint32_t s = state[g];
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            state[g] = s;
            uint64_t phases = (s & 31) | (s & 31 << 5) << 3;  // of even and odd lanes
            phases = (phases * 0x0001000100010001 ^ LANE) >> (bits - 1) & (31 >> (bits - 1)) * EACH;
            rows[g][i] = nearest ? (1 << (5 - bits)) * EACH : phases;
        }
}

template <int bits>
static void encode(const Value *x, View view, const float *k, const int8_t *delta, bool lfc, bool least, uint32_t seed,
                   bool nearest, uint8_t *codes, int8_t *bases, int64_t threads) {
    parallel(view.blocks(), GROUP, LEAST / 64, threads, [=](int64_t block, int64_t end) {
        int64_t number = view.segments(block * LANES);
        uint64_t random[AT_ONCE][GROUP * LANES];
        const Saturation saturated;
        for (int64_t first = block; block < end; block++) {
            int64_t place = (block - first) % (AT_ONCE * GROUP);
            if (place == 0) noise<bits>(block, seed, nearest, random);
            int32_t y[LANES * LANES] = {};
            int32_t base[LANES] = {};
            segments_of(view, block, [&](const Segment &segment) {
                double scale = k[segment.plane];
                Range r = rounded(segment, x, lfc, least, y + segment.begin * LANES,
                                  [=](float v) { return quantized(v, scale, saturated); });
                int32_t level = std::min(std::max(((r.level + 32) >> 6) + delta[segment.plane], -128), 127);
                for (int64_t i = 0; i < segment.count; i++) base[segment.begin + i] = level;
                bases[number++] = level;
            });
            uint8_t added[LANES * LANES], code[LANES * LANES];
            memcpy(added, random[place / GROUP] + place % GROUP * LANES, sizeof added);
            for (int64_t i = 0; i < LANES; i++)
                for (int64_t j = i * LANES; j < (i + 1) * LANES; j++) y[j] -= base[i];
            for (int64_t j = 0; j < LANES * LANES; j++)
                code[j] = std::min(std::max(y[j] + added[j], 0), 63) >> (6 - bits);
            for (int64_t i = 0; i < LANES; i++) {
                uint32_t word = packed<bits>(code + LANES * i);
                memcpy(codes + (block * LANES + i) * bits, &word, bits);
            }
        }
    });
}

// Codes, `bits` each, and the level of each segment.
EXPORT int64_t encode(const Value *x, int64_t tiled, int64_t rows, int64_t width, int64_t height, const float *k,
                      const int8_t *delta, int64_t bits, int64_t lfc, int64_t least, int64_t seed, int64_t nearest,
                      uint8_t *codes, int8_t *bases, int64_t threads) {
    with_bits(bits, [=](auto n) {
        encode<n>(x, View(tiled, rows, width, height), k, delta, lfc, least, seed, nearest, codes, bases, threads);
    });
    return 0;
}

template <int bits>
static void decode(const uint8_t *codes, const int8_t *bases, View view, const float *r, Value *x, int64_t threads) {
    parallel(view.blocks(), GROUP, LEAST / 64, threads, [=](int64_t block, int64_t end) {
        int64_t number = view.segments(block * LANES);
        for (; block < end; block++) {
            segments_of(view, block, [&](const Segment &segment) {
                int32_t base = bases[number++];
                float scale = r[segment.plane];
                float wide[LANES * LANES];
                for (int64_t i = 0; i < segment.count; i++) {
                    uint32_t word = 0;
                    memcpy(&word, codes + (block * LANES + segment.begin + i) * bits, bits);
                    for (int64_t j = 0; j < LANES; j++) {
                        int32_t code = word >> (bits * j) & ((1 << bits) - 1);
                        wide[i * LANES + j] = std::min(base + (code << (6 - bits)), 127) * scale + 0.0f;
                    }
                }
                Value values[LANES * LANES];
                for (int64_t i = 0; i < segment.count * LANES; i++) values[i] = Value(wide[i]);
                for (int64_t i = 0; i < segment.count; i++)
                    if (segment.values(i) == LANES)
                        memcpy(x + segment.place(i), values + i * LANES, LANES * sizeof(Value));
                    else
                        memcpy(x + segment.place(i), values + i * LANES, segment.values(i) * sizeof(Value));
            });
        }
    });
}

// The reverse.
EXPORT int64_t decode(const uint8_t *codes, const int8_t *bases, int64_t tiled, int64_t rows, int64_t width,
                      int64_t height, const float *r, int64_t bits, Value *x, int64_t threads) {
    with_bits(bits, [=](auto n) { decode<n>(codes, bases, View(tiled, rows, width, height), r, x, threads); });
    return 0;
}
