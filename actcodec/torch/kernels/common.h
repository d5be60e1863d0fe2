// What kernels share. Functions take pointers, int64_t and double alone (see __init__.py). A source is compiled for each
// type of the values of a tensor, which is VALUE.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Calls f(begin, end) for parts of 0 to n, each but the last of a multiple of unit, in so many threads at the most;
// small parts are not worth a thread.
template <class F> void parallel(int64_t n, int64_t unit, int64_t least, int64_t threads, F f) {
    int64_t parts = std::max<int64_t>(std::min(threads, n / std::max<int64_t>(least, 1)), 1);
    int64_t step = (n + parts - 1) / parts;
    step = (step + unit - 1) / unit * unit;
    std::vector<std::thread> others;
    for (int64_t i = step; i < n; i += step) others.emplace_back(f, i, std::min(i + step, n));
    f(int64_t(0), std::min(step, n));
    for (auto &one : others) one.join();
}

constexpr int64_t LEAST = 1 << 16;  // values that are worth a thread
constexpr uint64_t GATHER = 0x0102040810204080;  // times eight bytes of 0 or 1: bit i of the top byte is byte i

static inline uint64_t load64(const void *p) {
    uint64_t x;
    memcpy(&x, p, 8);
    return x;
}

// Eight rows of bytes, as words of so many squares of 8 x 8 side by side; what is in each square is transposed.
template <int n> struct Line {
    typedef uint64_t Words __attribute__((vector_size(8 * n)));
};
template <int n> using Squares = typename Line<n>::Words[8];

template <int far, class Words> static inline void transpose_step(Words (&x)[8], uint64_t mask) {
    for (int i = 0; i < 4; i++) {
        Words &low = x[i / far * 2 * far + i % far], &high = x[i / far * 2 * far + i % far + far];
        Words change = (low >> 8 * far ^ high) & mask;
        low ^= change << 8 * far, high ^= change;
    }
}

template <class Words> static inline void transpose(Words (&x)[8]) {
    transpose_step<1>(x, 0x00ff00ff00ff00ff);
    transpose_step<2>(x, 0x0000ffff0000ffff);
    transpose_step<4>(x, 0x00000000ffffffff);
}

// Eight values, as vectors.
constexpr int64_t LANES = 8;
typedef int32_t Row __attribute__((vector_size(4 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));
typedef float Floats __attribute__((vector_size(4 * LANES)));
constexpr Row LANE = {0, 1, 2, 3, 4, 5, 6, 7};

template <class To, class From> static inline To same_bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    memcpy(&y, &x, sizeof y);
    return y;
}

static inline uint32_t bits_of(float x) { return same_bits<uint32_t>(x); }
static inline Words bits_of(Floats x) { return same_bits<Words>(x); }
static inline float float_of(uint32_t bits) { return same_bits<float>(bits); }
static inline Floats float_of(Words bits) { return same_bits<Floats>(bits); }

// of float32
constexpr uint32_t MAGNITUDE = 0x7FFFFFFF, NORMAL = 0x00800000, INFINITE = 0x7F800000, QUIET = 0x7FC00000;
constexpr int FRACTION = 23, BIAS = 127;

// The last place of this number is 1, of those up to 2^22 less or more, too. A product that is added to it, and rounded
// once, is the nearest integer, half to even, in the low bits of the sum.
constexpr float INTEGER = 0x1.8p23f;

static inline float nearest(float x, float k) {
#ifdef __FP_FAST_FMAF
    return __builtin_fmaf(x, k, INTEGER);
#else
    constexpr double whole = 0x1.8p52;  // as INTEGER, of float64
    return float(double(x) * k + whole - whole + INTEGER);
#endif
}

// The scale of a channel, but 1 if all of it is zeros or infinities: 0 times infinity would be no number.
static inline float finite_scale(float k) { return k == 0 ? 1 : k; }

// Values of 16 bits, as golden/offload/memory/formats.py: widened exactly, and rounded to nearest even; a NaN keeps its
// sign and upper bits, and is quiet. Of one, or of eight as a vector: without branches, and without subnormal numbers of
// float32, which a processor may take for zeros.
struct Bfloat16 {
    uint16_t bits;
    Bfloat16() = default;
    explicit Bfloat16(float x) : bits(narrowed(bits_of(x))) {}
    operator float() const { return float_of(widened(uint32_t(bits))); }

    template <class U> static U widened(U code) { return code << 16; }
    template <class U> static U narrowed(U word) {
        U upper = word >> 16;
        return (word & MAGNITUDE) > INFINITE ? upper | 0x40 : (word + 0x7FFF + (upper & 1)) >> 16;
    }
};

struct Float16 {
    static constexpr int DROP = FRACTION - 10;  // bits of the mantissa
    static constexpr uint32_t REBIAS = (BIAS - 15) << FRACTION;
    uint16_t bits;
    Float16() = default;
    explicit Float16(float x) : bits(narrowed(bits_of(x))) {}
    operator float() const { return float_of(widened(uint32_t(bits))); }

    template <class U> static U widened(U code) {
        U magnitude = (code & 0x7FFF) << DROP, sign = (code & 0x8000) << 16;
        U small = bits_of(float_of(magnitude + REBIAS + NORMAL) - float_of(REBIAS + NORMAL));
        U word = magnitude < NORMAL ? small : magnitude + REBIAS;
        return sign | (magnitude < 0x7C00u << DROP ? word : magnitude | INFINITE);
    }
    template <class U> static U narrowed(U word) {
        U magnitude = word & MAGNITUDE;
        U normal = (magnitude - REBIAS + (1 << (DROP - 1)) - 1 + (magnitude >> DROP & 1)) >> DROP;
        U small = bits_of(float_of(magnitude) + 0.5f) - bits_of(0.5f);  // the last place of 0.5 is 2^-24
        U code = magnitude < REBIAS + NORMAL ? small : normal > 0x7C00u ? U{} + 0x7C00 : normal;
        code = magnitude > INFINITE ? 0x7E00 | (magnitude >> DROP & 0x3FF) : code;
        return (word >> 16 & 0x8000) | code;
    }
};

typedef VALUE Value;
