// COMET (comet.py; COMET, section 3.4).
#include "common.h"
#include <cmath>
#include <mutex>

constexpr int64_t TILES = 4, GROUP = 256;  // tiles of a group, and its values where there are none
constexpr int SYMBOLS = 1 << 12, WRAP = SYMBOLS / 2, OUTLIER = SYMBOLS;
constexpr int MAX_LENGTH = 8, MAX_SYMBOLS = 255, ONE_BYTE = 224, PENALTY = 16;

// Integers half away from zero; 0 for values whose magnitude is too large, or is none. Returns how many these are.
EXPORT int64_t quantize(const Value *x, int64_t n, double s, double most, int16_t *q, int64_t threads) {
    std::mutex mutex;
    int64_t outside = 0;
    parallel(n, 1, LEAST, threads, [&, x, s, most, q](int64_t i, int64_t end) {
        int64_t count = 0;
        for (; i < end; i++) {
            double y = x[i] / s;
            y = __builtin_trunc(y + __builtin_copysign(0.5, y));
            bool in = __builtin_fabs(y) <= most;
            q[i] = int16_t(int32_t(in ? y : 0.0));
            count += !in;
        }
        std::lock_guard<std::mutex> lock(mutex);
        outside += count;
    });
    return outside;
}

// Their places.
EXPORT int64_t outliers(const Value *x, int64_t n, double s, double most, int64_t *kept, int64_t) {
    for (int64_t i = 0; i < n; i++) {
        double y = x[i] / s;
        if (!(__builtin_fabs(__builtin_trunc(y + __builtin_copysign(0.5, y))) <= most)) *kept++ = i;
    }
    return 0;
}

struct Way {
    bool tiled, horizontal, vertical, is_signed;
};

struct View {
    int64_t rows, width, height;
};

static inline int16_t symbol(int32_t d, bool is_signed) {
    if (!is_signed) return d & (SYMBOLS - 1);
    d = ((d + WRAP) & (SYMBOLS - 1)) - WRAP;
    return d << 1 ^ d >> 31;
}

// Symbols of a row of the view, or, without tiles, of a group.
static void symbols_of(const int16_t *q, View view, Way way, int64_t row, int64_t n, int16_t *u) {
    const int16_t *own = q + row * view.width;
    std::vector<int16_t> buffer;
    const int16_t *d = own;
    if (way.vertical && row % LANES && row % view.height) {
        buffer.resize(n);
        for (int64_t i = 0; i < n; i++) buffer[i] = own[i] - own[i - view.width];
        d = buffer.data();
    }
    if (!way.horizontal) {
        for (int64_t i = 0; i < n; i++) u[i] = symbol(d[i], way.is_signed);
        return;
    }
    u[0] = symbol(d[0], way.is_signed);
    for (int64_t i = 1; i < n; i++) u[i] = symbol(int16_t(d[i] - d[i - 1]), way.is_signed);
    if (way.tiled) {  // the first tile of a group has no left neighbour
        int64_t across = (view.width + LANES - 1) / LANES, tile = row / LANES * across;
        for (int64_t t = (TILES - tile % TILES) % TILES; t < across; t += TILES)
            u[t * LANES] = symbol(d[t * LANES], way.is_signed);
    }
}

// f(row, count) for parts of rows, or groups, in several threads.
template <class F> static void in_parts(View view, int64_t total, int64_t threads, F f) {
    int64_t rows = (total + view.width - 1) / view.width;
    parallel(rows, 1, std::max<int64_t>(LEAST / view.width, 1), threads, f);
}

static View grouped(View view, Way way) { return way.tiled ? view : View{0, GROUP, 1}; }

EXPORT int64_t symbols(const int16_t *q, int64_t rows, int64_t width, int64_t height, int64_t tiled, int64_t horizontal,
                       int64_t vertical, int64_t is_signed, int16_t *u, int64_t threads) {
    Way way{tiled != 0, horizontal != 0, vertical != 0, is_signed != 0};
    View view = grouped({rows, width, height}, way);
    int64_t total = rows * width;
    in_parts(view, total, threads, [=](int64_t row, int64_t end) {
        for (; row < end; row++) {
            int64_t first = row * view.width;
            symbols_of(q, view, way, row, std::min(view.width, total - first), u + first);
        }
    });
    return 0;
}

static void histogram(const int16_t *q, View whole, Way way, int64_t *counts, int64_t threads) {
    View view = grouped(whole, way);
    int64_t total = whole.rows * whole.width;
    std::mutex mutex;
    std::fill(counts, counts + SYMBOLS, 0);
    in_parts(view, total, threads, [&, view, total, way](int64_t row, int64_t end) {
        std::vector<uint32_t> own(4 * SYMBOLS);  // four, as the same symbol often follows itself
        std::vector<int16_t> u(view.width);
        for (; row < end; row++) {
            int64_t n = std::min(view.width, total - row * view.width), i = 0;
            symbols_of(q, view, way, row, n, u.data());
            for (; i + 4 <= n; i += 4)
                for (int64_t j = 0; j < 4; j++) own[4 * u[i + j] + j]++;
            for (; i < n; i++) own[4 * u[i]]++;
        }
        std::lock_guard<std::mutex> lock(mutex);
        for (int64_t i = 0; i < SYMBOLS; i++) counts[i] += own[4 * i] + own[4 * i + 1] + own[4 * i + 2] + own[4 * i + 3];
    });
}

static double weight(double n) { return n ? n * std::log2(n) : 0; }

struct Book {
    int64_t counts[MAX_LENGTH + 1], U, cost;  // of codes of each length
};

// Bits of a histogram's symbols (golden's `cost`), by how many there are from each one on.
static int64_t cost(const Book &book, const int64_t *counts, const int64_t *above, int64_t penalty) {
    int64_t bits = 0, symbol = 0, longest = 0;
    for (int64_t length = 1; length <= MAX_LENGTH; length++)
        for (int64_t i = 0; i < book.counts[length]; i++, symbol++, longest = length)
            if (symbol < book.U) bits += counts[symbol] * length;
    int64_t escaped = above[book.U], wide = above[std::min<int64_t>(book.U + ONE_BYTE, SYMBOLS)];
    return bits + escaped * longest + (8 + penalty) * (escaped + wide);
}

// Package-merge, of weights that rise (golden's `lengths`): how many codes there are of each length.
static void lengths(const std::vector<double> &weights, int64_t *counts) {
    size_t n = weights.size();
    std::vector<double> merged = weights, next;
    std::vector<std::vector<uint8_t>> levels{std::vector<uint8_t>(n, 1)};
    for (int level = 1; level < MAX_LENGTH; level++) {
        size_t packages = merged.size() / 2, i = 0, j = 0;
        std::vector<uint8_t> single;
        next.clear();
        while (i < n || j < packages) {
            double package = j < packages ? merged[2 * j] + merged[2 * j + 1] : 0;
            bool own = j == packages || (i < n && weights[i] <= package);
            next.push_back(own ? weights[i++] : package);
            single.push_back(own);
            j += !own;
        }
        merged.swap(next);
        levels.push_back(single);
    }
    std::vector<int> result(n);
    int64_t items = 2 * n - 2;
    for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
        int64_t singles = std::count(level->begin(), level->begin() + std::min<int64_t>(items, level->size()), 1);
        for (int64_t i = 0; i < singles; i++) result[i]++;
        items = 2 * (items - singles);
    }
    std::fill(counts, counts + MAX_LENGTH + 1, 0);
    for (int one : result) counts[one]++;
}

// The book of least cost, of equals that of the smallest U (golden's `build`). Books are tried in the order of a bound
// on their cost, until that of the next one is above what was reached.
static Book build(const int64_t *counts, const int64_t *above) {
    int64_t candidates = 1;
    for (int64_t i = 0; i < MAX_SYMBOLS; i++) candidates = counts[i] ? i + 1 : candidates;
    if (above[MAX_SYMBOLS]) candidates = MAX_SYMBOLS;
    struct Pool {
        int64_t total, n;
    };
    std::vector<Pool> pools;
    std::vector<std::vector<Pool>> falling;
    std::vector<std::pair<double, int64_t>> order;
    double direct = 0;
    for (int64_t U = 1; U <= candidates; U++) {
        pools.push_back({counts[U - 1], 1});
        while (pools.size() > 1) {
            Pool &a = pools[pools.size() - 2], &b = pools.back();
            if (a.total * b.n >= b.total * a.n) break;
            a = {a.total + b.total, a.n + b.n};
            pools.pop_back();
        }
        falling.push_back(pools);
        direct += weight(counts[U - 1]);
        int64_t escaped = above[U], wide = above[std::min<int64_t>(U + ONE_BYTE, SYMBOLS)];
        double codes = weight(above[0]) - direct - weight(escaped);
        order.push_back({(codes + (8 + PENALTY) * double(escaped + wide)) * (1 - 1e-9) - 1e-6, U});
    }
    std::sort(order.begin(), order.end());
    Book best{};
    for (auto [least, U] : order) {
        if (best.U && least > best.cost) break;
        std::vector<double> weights{0};
        for (auto pool = falling[U - 1].rbegin(); pool != falling[U - 1].rend(); ++pool)
            weights.insert(weights.end(), pool->n, double(pool->total) / double(pool->n));
        weights[0] = std::min(double(above[U]), weights[1]);
        Book book{};
        lengths(weights, book.counts);
        book.U = U;
        book.cost = cost(book, counts, above, PENALTY);
        if (!best.U || std::make_pair(book.cost, U) < std::make_pair(best.cost, best.U)) best = book;
    }
    return best;
}

// Those of the symbols in `n` ways, each four flags, one after the other.
EXPORT int64_t histograms(const int16_t *q, int64_t rows, int64_t width, int64_t height, int64_t n, const int64_t *ways,
                          int64_t *counts, int64_t threads) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t *way = ways + 4 * i;
        int64_t j = 0, *own = counts + SYMBOLS * i;  // of the same differences
        while (j < i && memcmp(way, ways + 4 * j, 3 * sizeof *ways)) j++;
        if (j == i) {
            histogram(q, {rows, width, height}, {way[0] != 0, way[1] != 0, way[2] != 0, way[3] != 0}, own, threads);
        } else {
            for (int64_t d = -WRAP; d < WRAP; d++)
                own[symbol(d, way[3])] = counts[SYMBOLS * j + symbol(d, ways[4 * j + 3])];
        }
    }
    return 0;
}

// Which of `n` histograms costs least in a book of its own, of equals the first one (golden's `cheapest`); `result` has
// that book's counts.
EXPORT int64_t cheapest(const int64_t *counts, int64_t n, int64_t *result, int64_t) {
    std::vector<std::vector<int64_t>> above(n, std::vector<int64_t>(SYMBOLS + 1));
    std::vector<std::pair<double, int64_t>> order;
    for (int64_t i = 0; i < n; i++) {
        const int64_t *own = counts + SYMBOLS * i;
        double direct = 0;
        for (int64_t s = SYMBOLS; s--;) {
            above[i][s] = above[i][s + 1] + own[s];
            direct += weight(own[s]);
        }
        order.push_back({(weight(above[i][0]) - direct) * (1 - 1e-9), i});
    }
    std::sort(order.begin(), order.end());
    int64_t place = -1, bits = 0;
    Book best{};
    for (auto [least, i] : order) {
        if (place >= 0 && least > bits) break;
        Book book = build(counts + SYMBOLS * i, above[i].data());
        int64_t own = cost(book, counts + SYMBOLS * i, above[i].data(), 0);
        if (place < 0 || std::make_pair(own, i) < std::make_pair(bits, place)) place = i, bits = own, best = book;
    }
    std::copy(best.counts + 1, best.counts + MAX_LENGTH + 1, result);
    return place;
}

// Bytes of a stream of n symbols, by the bits of each one's code and the bytes of its escape (comet.py's `size`).
template <bool escapes>
static int64_t size_of(const int16_t *u, int64_t n, const uint8_t *code, const uint8_t *escape) {
    int64_t bits[LANES] = {}, last[LANES] = {}, bytes = 0;
    for (int64_t i = 0; i < n; i += LANES) {
        uint8_t own[LANES] = {}, raw = 0;
        int16_t round[LANES] = {};
        memcpy(round, u + i, std::min(LANES, n - i) * sizeof *u);
        for (int64_t j = 0; j < LANES; j++) bits[j] += last[j] = code[round[j]];
        if (!escapes) continue;
        for (int64_t j = 0; j < LANES; j++) raw = std::max(raw, own[j] = escape[round[j]]);
        for (int64_t j = 0; raw && j < LANES; j++) {
            bits[j] += raw + 7 * own[j];
            last[j] = own[j] == raw ? 8 : 1;
        }
    }
    for (int64_t j = 0; j < LANES; j++) bytes += 2 + (bits[j] - last[j] + 7) / 8;
    return n ? bytes : 0;
}

EXPORT int64_t size(const int16_t *u, int64_t n, const uint8_t *code, const uint8_t *escape, int64_t) {
    return escape ? size_of<true>(u, n, code, escape) : size_of<false>(u, n, code, escape);
}
