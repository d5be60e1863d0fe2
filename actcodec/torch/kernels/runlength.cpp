// How long JPEG's codes of blocks are (runlength.py; ITU-T T.81, section F.1.2).
#include "common.h"
#include <atomic>

constexpr int64_t N = 64, MAGNITUDES = 129;  // blocks at a time; of an int8 value

// Bytes of the codes of blocks, int8 [64, n], in the order `zigzag` of their places. `first` has the bits of a DC value of
// each magnitude, `codes` those of an AC value after each run of zeros, and `end` is how many end a block of zeros.
EXPORT int64_t size(const int8_t *q, int64_t n, const int64_t *zigzag, const int32_t *first, const int32_t *codes,
                    int64_t end, int64_t threads) {
    std::atomic<int64_t> bytes{0};
    parallel(n, N, LEAST / 64, threads, [&, q, n](int64_t i, int64_t last) {
        int64_t own = 0;
        for (; i < last; i += N) {
            int64_t count = std::min(N, last - i);
            int32_t bits[N], run[N] = {};  // of zeros in front of a value, times MAGNITUDES
            for (int64_t b = 0; b < count; b++) bits[b] = first[std::abs(int32_t(q[i + b]))];
            for (int64_t place = 1; place < 64; place++) {
                const int8_t *values = q + zigzag[place] * n + i;
                for (int64_t b = 0; b < count; b++) {
                    int32_t magnitude = std::abs(int32_t(values[b]));
                    bits[b] += codes[run[b] + magnitude];
                    run[b] = magnitude ? 0 : run[b] + int32_t(MAGNITUDES);
                }
            }
            for (int64_t b = 0; b < count; b++) own += (bits[b] + (run[b] ? end : 0) + 7) >> 3;
        }
        bytes += own;
    });
    return bytes;
}
