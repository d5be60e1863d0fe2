// DIVISION (division.py; DIVISION, sections 4.1 and 4.2).
#include "rows.h"
#include <cmath>
#include <functional>
#include <numeric>
#include <tuple>

constexpr int64_t GROUP = 4, AT_ONCE = 16;  // groups whose noise is made together
constexpr int LOG2[9] = {0, 0, 1, 1, 2, 2, 2, 2, 3};
constexpr Row HALVES = {0, 5, 0, 5, 0, 5, 0, 5};      // bits of a random number that even and odd lanes have
constexpr Row CHANGE = {0, 0, 16, 16, 24, 24, 8, 8};  // what lanes differ by

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

// Segments in their order, from a block on.
class Cursor {
    const View view;
    int64_t sector, row, plane;  // of the next one

    void move(int64_t sectors, int64_t rows) {
        if ((sector += sectors) < view.sectors) return;
        sector = 0, row += rows;
        plane = row / view.height;
    }

public:
    Cursor(const View &view, int64_t block) : view(view) {
        sector = view.tiled ? block % view.sectors : block * LANES % view.sectors;
        row = view.tiled ? block / view.sectors * LANES : block * LANES / view.sectors;
        plane = row / view.height;
    }

    // f(segment) for those of the next block.
    template <class F> void next(F f) {
        if (view.tiled) {
            f(Segment{plane, 0, LANES, view, row, sector, 3, LOG2[sector == view.sectors - 1 ? view.tail : LANES]});
            return move(1, LANES);
        }
        for (int64_t begin = 0; begin < LANES && row < view.rows;) {
            int64_t count = std::min(LANES - begin, view.sectors - sector);
            int64_t whole = count - (sector + count == view.sectors && view.tail < LANES);
            f(Segment{plane, begin, count, view, row, sector, LOG2[whole], whole ? 3 : LOG2[view.tail]});
            begin += count;
            move(count, 1);
        }
    }
};

// Smallest and largest integers of each lane, and the level of the segment: what is taken off, before rounding, in 64ths.
struct Range {
    Row low, high;
    int32_t level;
};

// Integers of a segment's rows by a function of its values, and their range.
template <class F>
static inline Range rounded(const Segment &segment, const Value *x, bool lfc, bool least, Row *y, F integer) {
    Row low, high, sum = {};
    auto add = [&](int64_t i, Row z, Row front) {
        low = i ? smaller(low, z) : z;
        high = i ? larger(high, z) : z;
        sum += z & front;
    };
    if (segment.a + segment.c == 6) {  // a tile, or as many values that follow each other
        Floats rows[LANES];
        load_rows(x + segment.place(0), segment.view.tiled ? segment.view.width : LANES, rows);
        for (int64_t i = 0; i < LANES; i++) add(i, y[i] = integer(rows[i]), Row{} - 1);
    } else {
        for (int64_t i = 0; i < segment.count; i++) {
            const Value *from = x + segment.place(i);
            const int64_t n = segment.values(i);
            Floats row;
            for (int64_t j = 0; j < LANES; j++) row[j] = j < n ? from[j] : from[0];  // which changes no extreme
            y[i] = integer(row);
            add(i, y[i], i >> segment.a ? Row{} : LANE < 1 << segment.c);
            y[i] &= LANE < int32_t(n);
        }
    }
    int32_t level = 0;
    if (lfc && least) level = all(low, smaller) << 6;
    else if (lfc) level = all(sum, std::plus<>()) << (6 - segment.a - segment.c);
    return {low, high, level};
}

// A plane's extremes of x * scale, rounded, less the level of its segment; in 64ths, before that is rounded, if fine. It
// has a part of so many blocks from the cursor's on.
static void extremes(const Value *x, Cursor cursor, int64_t blocks, int64_t plane, double scale, bool least, bool fine,
                     int32_t &low, int32_t &high) {
    const float before = scale > 0x1p100 ? 0x1p24f : 1, rest = scale / before;  // too large for a float, of small values
    Row lows = Row{} + INT32_MAX, highs = Row{} + INT32_MIN;
    const int32_t shift = fine ? 6 : 0;
    for (; blocks; blocks--)
        cursor.next([&](const Segment &segment) __attribute__((always_inline)) {
            if (segment.plane != plane) return;
            Row y[LANES];
            Range r = rounded(segment, x, true, least, y, [=](Floats v) { return nearest(normal(v) * before, rest); });
            int32_t level = fine ? r.level : (r.level + 32) >> 6;
            lows = smaller(lows, (r.low << shift) - level);
            highs = larger(highs, (r.high << shift) - level);
        });
    low = all(lows, smaller);
    high = all(highs, larger);
}

// Smallest and largest of some values.
static std::pair<float, float> ends_of(const Value *x, int64_t n) {
    Floats low = normal(Floats{} + float(x[0])), high = low;
    auto add = [&](Floats row) {
        row = normal(row);
        low = smaller(low, row);
        high = larger(high, row);
    };
    int64_t i = 0;
    for (; i + LANES * LANES <= n; i += LANES * LANES) {
        Floats rows[LANES];
        load_rows(x + i, LANES, rows);
        for (int64_t j = 0; j < LANES * LANES; j += 16) __builtin_prefetch(x + i + n + j);
        for (Floats row : rows) add(row);
    }
    for (; i < n; i++) add(Floats{} + float(x[i]));
    return {all(low, smaller), all(high, larger)};
}

// k and delta of each plane, as golden's table, for each of the ways from first to last: 0 without an offset, 1 with it.
EXPORT int64_t fit(const Value *x, int64_t tiled, int64_t rows, int64_t width, int64_t height, int64_t bits,
                   int64_t first_way, int64_t last_way, int64_t least, double most, float *k, int8_t *delta,
                   int64_t threads) {
    View view(tiled, rows, width, height);
    int64_t planes = rows / height, size = height * width, span = 64 - (1 << (6 - bits)), top = 128 - (1 << (6 - bits));
    parallel(planes, 1, std::max<int64_t>(LEAST / size, 1), threads, [=](int64_t plane, int64_t end) {
        for (; plane < end; plane++) {
            double smallest, greatest;
            std::tie(smallest, greatest) = ends_of(x + plane * size, size);
            double largest = std::max(-smallest, greatest);
            double scale = ldexp(1.0, largest == 0 ? 15 : 14 - std::ilogb(largest));
            int64_t sector = plane * height * view.sectors;  // flat, of its first block others may have a part
            int64_t first = sector / LANES, last = (sector + height * view.sectors + LANES - 1) / LANES;
            double other = largest == 0 ? INFINITY : top / largest;
            const Cursor cursor(view, first);
            for (int64_t way = first_way; way <= last_way; way++) {
                auto ends = [&](double by, bool fine, int32_t &low, int32_t &high) {
                    if (way) return extremes(x, cursor, last - first, plane, by, least, fine, low, high);
                    low = int32_t(__builtin_rint(smallest * by)) * (fine ? 64 : 1);  // rounding keeps the order
                    high = int32_t(__builtin_rint(greatest * by)) * (fine ? 64 : 1);
                };
                int32_t low, high;
                ends(scale, true, low, high);
                double one = high == low ? INFINITY : span * 64 * scale / double(high - low);
                double fitted = std::min(std::min(one, other), most);
                uint64_t word = load64(&fitted) & ~((uint64_t(1) << 45) - 1);  // down to a bfloat16
                memcpy(&fitted, &word, 8);
                float own = largest == 0 ? 0 : float(fitted);
                for (;; own = float_of(bits_of(own) - (1 << 16))) {
                    ends(own, false, low, high);
                    if (high - low <= span) break;
                }
                int64_t place = (way - first_way) * planes + plane;
                k[place] = own;
                delta[place] = std::max(low, -128);
            }
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

// Calls f with a constant.
template <class F> static void with_bits(int64_t bits, F f) {
    if (bits == 1) f(std::integral_constant<int, 1>());
    else if (bits == 2) f(std::integral_constant<int, 2>());
    else f(std::integral_constant<int, 4>());
}

// How many segments there are.
EXPORT int64_t segments(int64_t tiled, int64_t rows, int64_t width, int64_t height, int64_t) {
    View view(tiled, rows, width, height);
    return view.segments(rows * view.sectors);
}

// Random numbers of the rows of blocks, from one on, which is the first of its group. Those of a group follow each other,
// so that several groups take turns.
static void random_of(int64_t block, uint32_t seed, uint32_t (*rows)[AT_ONCE]) {
    uint32_t state[AT_ONCE];
    for (int64_t g = 0; g < AT_ONCE; g++) state[g] = mixed(seed, block / GROUP + g) | 1;
    for (int64_t i = 0; i < GROUP * LANES; i++)
        for (int64_t g = 0; g < AT_ONCE; g++) {
            uint32_t s = state[g];
            s ^= s << 13;
            s ^= s >> 17;
            s ^= s << 5;
            rows[i][g] = state[g] = s;
        }
}

template <int bits>
static void encode(const Value *x, View view, const float *k, const int8_t *delta, bool lfc, bool least, uint32_t seed,
                   bool nearest, uint8_t *codes, int8_t *bases, int64_t threads) {
    parallel(view.blocks(), GROUP, LEAST / 64, threads, [=](int64_t block, int64_t end) {
        int64_t number = view.segments(block * LANES);
        uint32_t random[GROUP * LANES][AT_ONCE];
        const Row phase = Row{} + (nearest ? 0 : 31), change = nearest ? Row{} + 16 : CHANGE;
        Cursor cursor(view, block);
        for (int64_t first = block; block < end; block++) {
            int64_t place = (block - first) % (AT_ONCE * GROUP);
            if (place == 0) random_of(block, seed, random);
            Row y[LANES] = {};
            cursor.next([&](const Segment &segment) {
                float scale = finite_scale(k[segment.plane]);
                Row *own = y + segment.begin;
                Range r = rounded(segment, x, lfc, least, own, [=](Floats v) { return quantized(v, scale); });
                int32_t level = std::min(std::max(((r.level + 32) >> 6) + delta[segment.plane], -128), 127);
                for (int64_t i = 0; i < segment.count; i++) own[i] -= level;
                bases[number++] = level;
            });
            for (int64_t i = 0; i < LANES; i++) {
                Row some = Row{} + int32_t(random[place % GROUP * LANES + i][place / GROUP]);
                Row added = ((some >> HALVES & phase) ^ change) >> (bits - 1);
                Row code = smaller(larger(y[i] + added, Row{}), Row{} + 63) >> (6 - bits);
                uint32_t word = all(code << bits * LANE, std::bit_or<>());
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
        Cursor cursor(view, block);
        for (; block < end; block++) {
            cursor.next([&](const Segment &segment) {
                int32_t base = bases[number++];
                float scale = r[segment.plane];
                Floats rows[LANES];
                for (int64_t i = 0; i < segment.count; i++) {
                    uint32_t word = 0;
                    memcpy(&word, codes + (block * LANES + segment.begin + i) * bits, bits);
                    Row code = (Row{} + int32_t(word)) >> bits * LANE & ((1 << bits) - 1);
                    Row y = smaller((code << (6 - bits)) + base, Row{} + 127);
                    rows[i] = __builtin_convertvector(y, Floats) * scale + 0.0f;
                }
                if (segment.a + segment.c == 6)
                    return store_rows(rows, view.tiled ? view.width : LANES, x + segment.place(0));
                for (int64_t i = 0; i < segment.count; i++)
                    for (int64_t j = 0; j < segment.values(i); j++) x[segment.place(i) + j] = Value(rows[i][j]);
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
