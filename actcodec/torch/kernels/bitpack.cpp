// Bitpack (bitpack.py; A2DTWP, section III): the upper bytes of values, as float32.
#include "rows.h"

constexpr int64_t WORD = 4;  // bytes of a value
typedef uint8_t Bytes __attribute__((vector_size(WORD * LANES)));

// Where the bytes of a packed row come from, and, in a packed row with zeros behind it, those of its words.
template <int size> struct Places {
    Bytes packed{}, words{};
    constexpr Places() {
        for (int i = 0; i < WORD * LANES; i++) {
            const int dropped = WORD - size, place = i % WORD - dropped;
            packed[i] = i < size * LANES ? i / size * WORD + dropped + i % size : 0;
            words[i] = place < 0 ? WORD * LANES - 1 : i / WORD * size + place;
        }
    }
};

template <int size> static void encode(const Value *x, int64_t n, uint8_t *out, int64_t threads) {
    parallel(n, LANES, LEAST, threads, [=](int64_t i, int64_t end) {
        static const Places<size> PLACES;
        for (; i + LANES <= end; i += LANES) {
            const Bytes bytes = __builtin_shuffle(same_bits<Bytes>(load_row(x + i)), PLACES.packed);
            memcpy(out + size * i, &bytes, size * LANES);
        }
        for (; i < end; i++) {
            const uint32_t word = bits_of(float(x[i])) >> 8 * (WORD - size);
            memcpy(out + size * i, &word, size);
        }
    });
}

template <int size> static void decode(const uint8_t *data, int64_t n, Value *x, int64_t threads) {
    parallel(n, LANES, LEAST, threads, [=](int64_t i, int64_t end) {
        static const Places<size> PLACES;
        for (; i + LANES <= end; i += LANES) {
            Line<WORD>::Words row{};  // in registers, where bytes would go through memory
            for (int j = 0; j < size; j++) row[j] = load64(data + size * i + 8 * j);
            store_row(same_bits<Floats>(__builtin_shuffle(same_bits<Bytes>(row), PLACES.words)), x + i);
        }
        for (; i < end; i++) {
            uint32_t word = 0;
            memcpy(&word, data + size * i, size);
            x[i] = Value(float_of(word << 8 * (WORD - size)));
        }
    });
}

// So many bytes of each value.
EXPORT int64_t encode(const Value *x, int64_t n, int64_t size, uint8_t *out, int64_t threads) {
    (size == 1 ? encode<1> : size == 2 ? encode<2> : encode<3>)(x, n, out, threads);
    return 0;
}

// The reverse; the other bytes are zero.
EXPORT int64_t decode(const uint8_t *data, int64_t n, int64_t size, Value *x, int64_t threads) {
    (size == 1 ? decode<1> : size == 2 ? decode<2> : decode<3>)(data, n, x, threads);
    return 0;
}
