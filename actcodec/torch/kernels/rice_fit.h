// The table of the Rice code for a tensor: `fit` of golden/jpegact/rice.py, with the same steps in the same order. All
// that a table does to a block is a sum, or a union, over parts that each depend on one k: the anti-diagonals, or all
// values if straight. A step of one k changes one of them.
#pragma once
#include "rice.h"
#include <cmath>
#include <memory>

struct Parameters {
    int k[DIAGONALS], flags, e[4];

    bool operator==(const Parameters &other) const { return !memcmp(this, &other, sizeof other); }

    int64_t word(bool straight) const {
        int64_t word = int64_t(flags) << 45 | int64_t(straight) << 62;
        for (int d = 0; d < DIAGONALS; d++) word |= int64_t(k[d]) << 3 * d;
        for (int i = 0; i < 4; i++) word |= int64_t(e[i]) << (50 + 3 * i);
        return word;
    }

    // The nearest ones that obey the limits, and k + e <= 8 for all but the first k.
    Parameters recommended() const {
        Parameters best;
        for (int d = 0; d < DIAGONALS; d++) best.k[d] = std::min(std::max(k[d], 0), 7);
        int most = std::min(7, 8 - *std::max_element(best.k + 1, best.k + DIAGONALS));
        for (int i = 0; i < 4; i++) best.e[i] = std::min(std::max(e[i], 0), most);
        std::sort(best.e, best.e + 4);
        best.flags = std::min(std::max(flags, 0), int(GROUPS));
        return best;
    }
};

// What is a union over parts of UNIT blocks: groups with a class above 0, and the most bits beyond k that a value of
// class 3 needs.
struct Union {
    uint16_t groups[UNIT];
    uint8_t need[UNIT];

    Union with(const Union &other) const {
        Union all;
        for (int b = 0; b < UNIT; b++) all.groups[b] = groups[b] | other.groups[b];
        for (int b = 0; b < UNIT; b++) all.need[b] = std::max(need[b], other.need[b]);
        return all;
    }
};

// What is a sum: bits, but those beyond k of class 3, and values of class 3.
struct Sum {
    uint16_t bits[UNIT];
    uint8_t third[UNIT];

    Sum with(const Sum &more, const Sum &less) const {
        Sum all;
        for (int b = 0; b < UNIT; b++) all.bits[b] = bits[b] + more.bits[b] - less.bits[b];
        for (int b = 0; b < UNIT; b++) all.third[b] = third[b] + more.third[b] - less.third[b];
        return all;
    }
};

// Both for one part with one k, or for all parts together.
struct Unit {
    Sum sum;
    Union all;
};

class Fit {
    static constexpr int64_t AHEAD = 16;  // blocks of a sample that are fetched while others are sorted
    const bool straight;
    const int parts;
    int64_t used = 0, n;  // blocks that are not zero: the others have a byte under any table; room for them
    std::unique_ptr<uint8_t[]> u;  // of UNIT blocks, a row for each place of a tile
    std::vector<int> values[DIAGONALS];  // of each part
    std::vector<Unit> known[DIAGONALS][8];
    Parameters best;
    std::vector<Unit> now;                         // all parts, with the best table so far
    std::unique_ptr<Union[]> unions;               // units of the parts before one, and, behind them, from one on

    const uint8_t *row(int64_t unit, int v) const { return u.get() + UNIT * (N * unit + 8 * (v % 8) + v / 8); }

    // Eight blocks, from so many on.
    void add(const uint8_t (&some)[8][N], int64_t b) {
        Squares<8> x;
        memcpy(x, some, sizeof x);
        transpose(x);
        uint8_t *to = u.get() + b / UNIT * UNIT * N + b % UNIT;
        for (int64_t place = 0; place < N; place++) {
            uint64_t word = x[place / 8][place % 8];
            memcpy(to + UNIT * place, &word, 8);
        }
    }

    int64_t units() const { return (used + UNIT - 1) / UNIT; }

    Union *below(int part) const { return unions.get() + part * units(); }

    Union *above(int part) const { return below(parts + 1 + part); }

    const Unit *share(int part, int k) {
        std::vector<Unit> &one = known[part][k];
        if (one.empty()) {
            one.reserve(units());
            for (int64_t i = 0; i < units(); i++) one.push_back(unit(i, part, k));
        }
        return one.data();
    }

    Unit unit(int64_t i, int part, int k) const {
        const uint8_t one = Rice::last(straight, k, 0), two = Rice::last(straight, k, 1);
        const uint8_t three = Rice::last(straight, k, 2);
        uint8_t enough[8];
        for (int e = 0; e < 8; e++) enough[e] = Rice::last(straight, k, 2 + (1 << e));
        uint8_t planes[UNIT] = {}, third[UNIT] = {}, coded[UNIT] = {}, most[UNIT] = {}, need[UNIT] = {};
        uint16_t groups[UNIT] = {}, bits[UNIT];  // no pointer sees these: vectors
        for (int v : values[part]) {
            const uint8_t *from = row(i, v);
            const uint16_t group = 1 << v / 4;
            for (int b = 0; b < UNIT; b++) {
                const uint8_t u = from[b];
                planes[b] += (u > one) + (u > two);
                third[b] += u > three;
                coded[b] += u > 0;
                most[b] = std::max(most[b], u);
            }
            for (int b = 0; b < UNIT; b++) groups[b] |= -(from[b] > one) & group;
        }
        for (int e = 0; e < 8; e++)
            for (int b = 0; b < UNIT; b++) need[b] += most[b] > enough[e];
        const int all = values[part].size();
        for (int b = 0; b < UNIT; b++) bits[b] = planes[b] + k * (straight ? coded[b] : all);
        Unit made;
        memcpy(made.sum.bits, bits, sizeof bits);
        memcpy(made.sum.third, third, UNIT);
        memcpy(made.all.groups, groups, sizeof groups);
        memcpy(made.all.need, need, UNIT);
        return made;
    }

    // Bytes of the blocks with a table, with which f(i) is what all parts together make of a unit.
    template <class F> int64_t total(const Parameters &table, F f) {
        const Unit *corners = share(0, table.k[0]);  // the only part with k + e > 8
        const uint8_t e0 = table.e[0], e1 = table.e[1], e2 = table.e[2], e3 = table.e[3], first = 8 - table.k[0];
        const int hidden = GROUPS - table.flags;
        const uint16_t always = table.flags + 4 * hidden + 7, flagged = 0xffff << hidden;
        uint16_t sums[UNIT] = {}, sizes[UNIT];
        for (int64_t i = 0; i < units(); i++) {
            const Unit unit = f(i);
            const uint16_t *groups = unit.all.groups, *bits = unit.sum.bits;
            const uint8_t *need = unit.all.need, *third = unit.sum.third;
            uint8_t e[UNIT];
            uint16_t more[UNIT], wide[UNIT];  // masks of bytes are no masks of words
            for (int b = 0; b < UNIT; b++) wide[b] = need[b];
            for (int b = 0; b < UNIT; b++) e[b] = need[b] <= e0 ? e0 : need[b] <= e1 ? e1 : need[b] <= e2 ? e2 : e3;
            for (int b = 0; b < UNIT; b++) more[b] = e[b] * third[b];
            if (e3 > first)
                for (int b = 0; b < UNIT; b++) more[b] -= (e[b] - std::min(e[b], first)) * corners[i].sum.third[b];
            for (int b = 0; b < UNIT; b++) {
                uint16_t shown = groups[b] & flagged;
                shown -= shown >> 1 & 0x5555;
                shown = (shown & 0x3333) + (shown >> 2 & 0x3333);
                shown = (shown + (shown >> 4)) & 0x0f0f;
                shown = (shown + (shown >> 8)) & 31;
                uint16_t bytes = uint16_t(bits[b] + more[b] + always + 4 * shown) >> 3;
                sizes[b] = wide[b] > e3 || bytes > Rice::MOST ? uint16_t(N) : bytes;
            }
            for (int b = 0; b < UNIT; b++) sums[b] += sizes[b];
        }
        int64_t sum = std::accumulate(sums, sums + UNIT, int64_t(0));
        return used ? sum - (units() * UNIT - used) * sizes[UNIT - 1] : 0;  // behind the last block are zeros
    }

    // Of all bytes in rows.
    uint64_t sum_of(int v) const {
        uint64_t sum = 0;
#ifdef __AVX512BW__
        __m512i sums = _mm512_setzero_si512();
        for (int64_t i = 0; i < units(); i++)
            sums = _mm512_add_epi64(sums, _mm512_sad_epu8(_mm512_loadu_si512(row(i, v)), _mm512_setzero_si512()));
        sum = _mm512_reduce_add_epi64(sums);
#else
        for (int64_t i = 0; i < units(); i++)
            for (int64_t b = 0; b < UNIT; b++) sum += row(i, v)[b];
#endif
        return sum;
    }

    Parameters start(int64_t blocks) const {
        double means[DIAGONALS];
        for (int part = 0; part < parts; part++) {
            double mean = 0;
            for (int v : values[part]) {
                mean += double(sum_of(v)) / std::max<int64_t>(blocks, 1);
            }
            means[part] = mean / values[part].size();
        }
        Parameters first = {{}, int(GROUPS / 2), {1, 2, 3, 5}};
        for (int d = 0; d < DIAGONALS; d++)
            first.k[d] = int(rint(log2(std::max(0.69 * means[straight ? 0 : d], 1.0))));
        return first.recommended();
    }

public:
    int64_t least = 0;  // bytes of these blocks with the best table

    // Of every `step`th block of x.
    Fit(const uint8_t *x, int64_t blocks, int64_t step, bool straight)
        : straight(straight), parts(straight ? 1 : DIAGONALS), n((blocks + UNIT - 1) / UNIT * UNIT), u(new uint8_t[N * n]) {
        uint8_t some[8][N] = {};
        for (int64_t i = 0; i < blocks; i++) {
            const uint8_t *block = x + N * step * i;
            __builtin_prefetch(block + std::min<int64_t>(AHEAD, blocks - 1 - i) * N * step);
            if (is_zero(block)) continue;
            for (int v = 0; v < N; v++) some[used % 8][v] = fold(block[v], straight);
            if (++used % 8 == 0) add(some, used - 8);
        }
        memset(some[used % 8], 0, N * (8 - used % 8));
        for (int64_t b = used / 8 * 8; b < units() * UNIT; b += 8) {
            add(some, b);
            memset(some, 0, sizeof some);
        }
        for (int v = 0; v < N; v++) values[straight ? 0 : v / 8 + v % 8].push_back(v);
        best = start(blocks);
        now.resize(units());
        unions.reset(new Union[2 * (parts + 1) * units()]);
        std::fill_n(below(0), units(), Union{});
        std::fill_n(above(parts), units(), Union{});
        const Sum nothing = {};
        for (int part = 0; part < parts; part++) {
            const Unit *own = share(part, best.k[part]);
            for (int64_t i = 0; i < units(); i++)
                now[i] = {now[i].sum.with(own[i].sum, nothing), now[i].all.with(own[i].all)};
        }
    }

    // Takes every step that makes the payload smaller, until all have failed in a row.
    Parameters descend() {
        const int steps = parts + 4 + 1 + 3;
        auto same = [&](int64_t i) { return now[i]; };
        least = total(best, same);
        bool fresh = false;  // unions are those of the best table
        for (int failed = 0, change = 1;; change = -change) {
            for (int part = fresh ? 0 : parts; part--;) unite(above(part), above(part + 1), part);
            bool changed = !fresh;
            fresh = true;
            for (int step = 0; step < steps; step++) {
                Parameters table = best;
                int i = step - parts;
                if (i < 0 && straight) for (int &k : table.k) k += change;
                else if (i < 0) table.k[step] += change;
                else if (i < 4) table.e[i] += change;
                else if (i == 4) for (int &e : table.e) e += change;
                else table.flags += change * (1 << (i - 5));
                table = table.recommended();
                bool better = false;
                if (!(table == best) && i >= 0) {
                    int64_t size = total(table, same);
                    if ((better = size < least)) least = size;
                } else if (!(table == best)) {
                    const Unit *old = share(step, best.k[step]), *own = share(step, table.k[step]), *all = now.data();
                    const Union *before = below(step), *behind = above(step + 1);
                    auto other = [=](int64_t i) {
                        return Unit{all[i].sum.with(own[i].sum, old[i].sum), before[i].with(behind[i]).with(own[i].all)};
                    };
                    int64_t size = total(table, other);
                    if ((better = size < least)) {
                        least = size;
                        for (int64_t i = 0; i < units(); i++) now[i] = other(i);
                        changed = true, fresh = false;
                    }
                }
                if (better) best = table;
                failed = better ? 0 : failed + 1;
                if (failed == 2 * steps) return best;
                if (i < 0 && changed) unite(below(step + 1), below(step), step);
            }
        }
    }

private:
    void unite(Union *to, const Union *others, int part) {
        const Unit *own = share(part, best.k[part]);
        for (int64_t i = 0; i < units(); i++) to[i] = others[i].with(own[i].all);
    }
};
