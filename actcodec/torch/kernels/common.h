// What kernels share. Functions take pointers, int64_t and double alone (see __init__.py).
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

static inline uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    return bits;
}

static inline float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}
