// The nibble and Rice codes (blockcodes.py).
#include "nibble.h"
#include "rice_fit.h"

// The word of the table for n blocks, of which it finds it in `most` at the most, and these are less than 2^15: that which
// makes them smallest, not straight, straight, or, from first to last, either.
EXPORT int64_t rice_fit(const uint8_t *x, int64_t n, int64_t most, int64_t first, int64_t last, int64_t) {
    int64_t step = std::max<int64_t>((n + most - 1) / most, 1), least = INT64_MAX, word = 0;
    for (int64_t straight = first; straight <= last; straight++) {
        Fit fit(x, (n + step - 1) / step, step, straight);
        Parameters best = fit.descend();
        if (fit.least >= least) continue;
        least = fit.least;
        word = best.word(straight);
    }
    return word;
}

EXPORT int64_t rice_size(const uint8_t *x, int64_t n, int64_t word, int64_t threads) {
    return size(Rice(word), x, n, threads);
}

EXPORT int64_t rice_encode(const uint8_t *x, int64_t n, int64_t word, uint8_t *payload, int64_t bytes, int64_t threads) {
    return encode(Rice(word), x, n, payload, bytes, threads);
}

EXPORT int64_t rice_decode(const uint8_t *payload, int64_t bytes, int64_t n, int64_t word, uint8_t *x, int64_t threads) {
    return decode(Rice(word), payload, bytes, n, x, threads);
}

EXPORT int64_t nibble_fit(const uint8_t *x, int64_t n, int64_t straight, int64_t *numbers, int64_t) {
    fit_widths(x, n, straight, numbers);
    return 0;
}

EXPORT int64_t nibble_size(const uint8_t *x, int64_t n, int64_t low, int64_t high, int64_t threads) {
    return size(Nibble(low, high), x, n, threads);
}

EXPORT int64_t nibble_encode(const uint8_t *x, int64_t n, int64_t low, int64_t high, uint8_t *payload, int64_t bytes,
                             int64_t threads) {
    return encode(Nibble(low, high), x, n, payload, bytes, threads);
}

EXPORT int64_t nibble_decode(const uint8_t *payload, int64_t bytes, int64_t n, int64_t low, int64_t high, uint8_t *x,
                             int64_t threads) {
    return decode(Nibble(low, high), payload, bytes, n, x, threads);
}
