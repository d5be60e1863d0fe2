// Bitpack (bitpack.py; A2DTWP, section III): the upper bytes of values, as float32.
#include "rows.h"
#include <utility>

constexpr int64_t WORD = 4;  // bytes of a value
typedef uint8_t Bytes __attribute__((vector_size(WORD * LANES)));

// Bytes from other places; compilers make one instruction of it.
template <class F, size_t... i> static inline Bytes moved(Bytes from, F place, std::index_sequence<i...>) {
    return Bytes{from[place(i)]...};
}

template <class F> static inline Bytes moved(Bytes from, F place) {
    return moved(from, place, std::make_index_sequence<WORD * LANES>());
}

// Where the bytes of a packed row are in its words, and those of the words in a packed row.
template <int size> constexpr int packed_from(int i) {
    return i < size * LANES ? i / size * WORD + WORD - size + i % size : 0;
}

template <int size> constexpr int words_from(int i) {
    return i / WORD * size + std::max<int>(i % WORD - (WORD - size), 0);
}

template <int size> static void encode(const Value *x, int64_t n, uint8_t *out, int64_t threads) {
    parallel(n, LANES, LEAST, threads, [=](int64_t i, int64_t end) {
        for (; i + LANES <= end; i += LANES) {
            const Bytes bytes = moved(same_bits<Bytes>(load_row(x + i)), packed_from<size>);
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
        constexpr int64_t READ = (WORD * LANES + size - 1) / size;  // values that a load takes bytes of
        for (; i + LANES <= end && i + READ <= n; i += LANES) {
            Bytes bytes;
            memcpy(&bytes, data + size * i, sizeof bytes);
            const Words words = same_bits<Words>(moved(bytes, words_from<size>));
            store_row(float_of(words & ~0u << 8 * (WORD - size)), x + i);
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
