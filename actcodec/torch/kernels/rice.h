// Golomb-Rice codes in planes (golden/jpegact/rice.py).
#pragma once
#include "blocks.h"

constexpr int64_t DIAGONALS = 15;

// A table is its word: k in bits 44:0, three each, flags in 49:45, e in 61:50, straight in bit 62.
struct Rice {
    static constexpr int RAW = 63, MOST = 62;
    bool straight;
    int64_t flags;
    uint8_t limit[3][N], enough[4][N];  // the greatest u that no plane shows, and that each e has room for
    uint8_t add[3][N];                  // what a 1 of each plane adds to u
    uint8_t mask[N], masks[4][N];       // of mantissas of classes below 3, and, for each e, of class 3

    explicit Rice(int64_t word) : straight(word >> 62 & 1), flags(word >> 45 & 31) {
        for (int v = 0; v < N; v++) {
            int k = word >> 3 * (v / 8 + v % 8) & 7;
            mask[v] = (1 << k) - 1;
            for (int i = 0; i < 3; i++) {
                limit[i][v] = last(straight, k, i);
                add[i][v] = i || !straight ? 1 << k : 1;
            }
            for (int i = 0; i < 4; i++) {
                int e = word >> (50 + 3 * i) & 7;
                enough[i][v] = last(straight, k, 2 + (1 << e));
                masks[i][v] = (1 << std::min(k + e, 8)) - 1;
            }
        }
    }

    // The greatest byte u whose class, if there were more of them, is so much.
    static uint8_t last(bool straight, int k, int kind) {
        return std::min(straight ? kind << k : ((kind + 1) << k) - 1, 255);
    }

    int64_t step(uint8_t first) const { return 1 + (first % 64 == RAW ? N : first % 64); }

    struct Plan {
        uint8_t mantissa[N], mask[N];
        uint64_t planes[3];
        uint32_t group, present;
        uint8_t head;
    };

    void plan(const uint8_t *x, Plan &p) const {
        uint8_t u[N], above[3][N], own[N], rest[N];  // no pointer sees these: vectors
        for (int v = 0; v < N; v++) u[v] = fold(x[v], straight);
        for (int i = 0; i < 3; i++)
            for (int v = 0; v < N; v++) above[i][v] = u[v] > limit[i][v];
        uint8_t i = 0;  // of e: what is above one limit is above the ones before
        for (int j = 0; j < 4; j++) i += bits_above(u, enough[j]) != 0;
        const uint8_t *longer = masks[i & 3], always = !straight;
        for (int v = 0; v < N; v++) {
            own[v] = (mask[v] & -(always | above[0][v])) | (longer[v] & -above[2][v]);
            rest[v] = u[v];
            for (int j = 0; j < 3; j++) rest[v] -= add[j][v] & -above[j][v];
        }
        memcpy(p.mask, own, N);
        memcpy(p.mantissa, rest, N);
        for (int j = 0; j < 3; j++) p.planes[j] = bits_above(u, limit[j]);
        uint64_t some = p.planes[0] | p.planes[0] >> 1;
        p.group = picked(some | some >> 2, 0x1111111111111111);
        p.present = p.group | ((1u << (GROUPS - flags)) - 1);
        int total = flags + 4 * __builtin_popcount(p.present);
        total += __builtin_popcountll(p.planes[0]) + __builtin_popcountll(p.planes[1]);
        for (int v = 0; v < N; v += 8) total += __builtin_popcountll(load64(p.mask + v));
        int bytes = (total + 7) >> 3;
        p.head = is_zero(x) ? 0 : i == 4 || bytes > MOST ? RAW : uint8_t(bytes | i << 6);
    }

    int64_t size(const uint8_t *x) const {
        Plan p;
        plan(x, p);
        return step(p.head);
    }

    // A mask of groups, one bit each, as a mask of their values.
    static uint64_t values_of(uint32_t groups) { return spread(groups, 0x1111111111111111) * 15; }

    int64_t encode(const uint8_t *x, uint8_t *to) const {
        Plan p;
        plan(x, p);
        to[0] = p.head;
        if (p.head == RAW) {
            memcpy(to + 1, x, N);
        } else if (p.head) {
            Writer writer{to + 1};
            writer.put(p.group >> (GROUPS - flags), flags);
            writer.put(picked(p.planes[0], values_of(p.present)), 4 * __builtin_popcount(p.present));
            for (int i = 0; i < 2; i++)
                writer.put(picked(p.planes[i + 1], p.planes[i]), __builtin_popcountll(p.planes[i]));
            for (int v = 0; v < N; v += 8) {
                uint64_t own = load64(p.mask + v);
                writer.put(picked_low(load64(p.mantissa + v), own), __builtin_popcountll(own));
            }
            writer.end();
        }
        return step(p.head);
    }

    // To u, which `finish` takes.
    void decode(const uint8_t *from, uint8_t *x) const {
        uint8_t first = from[0];
        if (first % 64 == RAW) {
            for (int v = 0; v < N; v++) x[v] = fold(from[1 + v], straight);
            return;
        }
        if (!(first % 64)) {
            memset(x, 0, N);
            return;
        }
        Reader reader{from + 1};
        uint32_t shown = reader.get(flags) & ((1u << flags) - 1);
        uint32_t present = shown << (GROUPS - flags) | ((1u << (GROUPS - flags)) - 1);
        uint64_t plane = spread(reader.get(4 * __builtin_popcount(present)), values_of(present));
        uint64_t planes[3] = {plane};
        for (int i = 1; i < 3; i++) planes[i] = spread(reader.get(__builtin_popcountll(planes[i - 1])), planes[i - 1]);
        uint8_t above[3][N], own[N], u[N];
        for (int i = 0; i < 3; i++) bytes_of(planes[i], above[i]);
        const uint8_t *longer = masks[first >> 6], always = straight ? 0 : 255;
        for (int v = 0; v < N; v++) {
            own[v] = (mask[v] & (always | above[0][v])) | (longer[v] & above[2][v]);
            u[v] = 0;
            for (int i = 0; i < 3; i++) u[v] += add[i][v] & above[i][v];
        }
        for (int v = 0; v < N; v += 8) {
            uint64_t some = load64(own + v);
            some = load64(u + v) + spread_low(reader.get(__builtin_popcountll(some)), some);
            memcpy(x + v, &some, 8);
        }
    }

    // Makes values of the u of blocks.
    void finish(uint8_t *x, int64_t n) const {
        unfold_all(x, N * n, straight);
    }
};
