// MX (mx.py; OCP Microscaling Formats v1.0, section 5). A group is four rows of eight values.
#include "rows.h"

constexpr int64_t GROUP = 32, SECTORS = GROUP / LANES;
constexpr int NAN_SCALE = 255, PLAIN = 32;  // from this scale on, subnormal numbers are below half of any element
typedef Floats Group[SECTORS];

static inline float power(int32_t exponent) { return float_of(uint32_t(exponent + BIAS) << FRACTION); }

// x times 2^exponent, in two halves: a power below 2^-126 would be a zero where subnormal numbers count as such.
struct Scaling {
    float half, rest;
    explicit Scaling(int32_t exponent) : half(power(exponent >> 1)), rest(power(exponent - (exponent >> 1))) {}
    Floats operator()(Floats x) const { return x * half * rest; }
};

// An element format: codes of the largest magnitude, of infinity, which may be the same one, and of NaN; where that is
// below 0, a group that has a NaN has it in its scale.
struct Format {
    int32_t exponent, mantissa, bias, largest, infinity, nan;
};

// Where values of groups are in a tensor whose rows are padded to whole sectors, and whose end to whole groups.
class Cursor {
    const int64_t rows, width, padded;
    int64_t row, column;

    // f(sector, place, count) for each sector of the next group. Most copies are of eight values, a vector's.
    template <class F> void next(F f) {
        for (int64_t i = 0; i < SECTORS; i++) {
            f(i, place(), row < rows ? std::min(LANES, width - column) : 0);
            if ((column += LANES) == padded) column = 0, row++;
        }
    }

    void skip() {
        for (column += GROUP; column >= padded; column -= padded) row++;
    }

    int64_t place() const { return row * width + column; }

    // Whether no value of the next group is padding.
    bool whole() const { return (width == padded || column + GROUP <= width) && place() + GROUP <= rows * width; }

public:
    Cursor(int64_t rows, int64_t width, int64_t padded, int64_t group)
        : rows(rows), width(width), padded(padded), row(group * GROUP / padded), column(group * GROUP % padded) {}

    void load(const Value *x, Group &values) {
        if (whole()) {
            load_rows(x + place(), LANES, values);
            return skip();
        }
        Value part[GROUP] = {};
        next([&](int64_t i, int64_t place, int64_t count) {
            if (count == LANES) memcpy(part + LANES * i, x + place, LANES * sizeof(Value));
            else std::copy_n(x + place, count, part + LANES * i);
        });
        load_rows(part, LANES, values);
    }

    void store(const Group &values, Value *x) {
        if (whole()) {
            store_rows(values, LANES, x + place());
            return skip();
        }
        Value part[GROUP];
        store_rows(values, LANES, part);
        next([&](int64_t i, int64_t place, int64_t count) {
            if (count == LANES) memcpy(x + place, part + LANES * i, LANES * sizeof(Value));
            else std::copy_n(part + LANES * i, count, x + place);
        });
    }
};

// The scale of a group, and whether it is plain. A fraction of the greatest magnitude that is more than `threshold` rounds
// its exponent up.
static inline uint8_t scale_of(const Group &values, int32_t emax, int32_t threshold, bool nans, bool &plain) {
    Row most = {}, finite = {};
    for (const Floats &x : values) most = larger(most, same_bits<Row>(x) & int32_t(MAGNITUDE));
    const int32_t last = all(most, larger);
    for (int64_t i = 0; i < SECTORS && last >= int32_t(INFINITE); i++) {
        const Row bits = same_bits<Row>(values[i]) & int32_t(MAGNITUDE);
        finite = larger(finite, bits & (bits < int32_t(INFINITE)));
    }
    const int32_t greatest = last < int32_t(INFINITE) ? last : all(finite, larger);
    int32_t exponent = (greatest >> FRACTION) - emax + ((greatest & int32_t(NORMAL - 1)) > threshold);
    plain = last < int32_t(INFINITE) && exponent >= PLAIN;
    if (nans && last > int32_t(INFINITE)) return NAN_SCALE;
    return greatest < int32_t(NORMAL) ? 0 : std::min(std::max(exponent, 0), 2 * BIAS);
}

// Codes of a sector, whose values the scale has made less than twice the largest power. What is exact in float32, or
// becomes 0 anyway, needs no float64. In a `plain` group no value is infinite or NaN, and what is subnormal becomes 0.
template <bool floats, bool plain> static inline Row encoded(Floats x, const Format &form, const Scaling &by) {
    const int32_t fraction = form.mantissa + form.bias - 1;
    const Row word = same_bits<Row>(x), bits = word & int32_t(MAGNITUDE), negative = word >> 31;
    const Floats s = by(plain ? same_bits<Floats>(bits) : normal(same_bits<Floats>(bits)));
    Row octave = {};
    if (floats) octave = larger((same_bits<Row>(s) >> FRACTION) + (form.bias - 1 - BIAS), Row{});
    const Floats unit = same_bits<Floats>((fraction + BIAS - octave) << FRACTION);
    Row code = same_bits<Row>(s * unit + INTEGER) - int32_t(bits_of(INTEGER)) + (octave << form.mantissa);
    code = smaller(code, Row{} + form.largest);
    if (!plain) code = bits == int32_t(INFINITE) ? Row{} + form.infinity : code;
    code = floats ? code | (negative & 1 << (form.exponent + form.mantissa)) : (code ^ negative) - negative;
    return !plain && form.nan >= 0 ? bits > int32_t(INFINITE) ? Row{} + form.nan : code : code;
}

// Values of codes at a scale of 1, without subnormal numbers of float32, which a processor may take for zeros.
template <bool floats> static inline Floats decoded(Row code, const Format &form) {
    if (!floats) return __builtin_convertvector(code << 24 >> 24, Floats) * power(-form.mantissa);
    const int32_t sign = 1 << (form.exponent + form.mantissa), drop = FRACTION - form.mantissa;
    const int32_t rebias = (BIAS - form.bias) << FRACTION, first = rebias + int32_t(NORMAL);
    const Row magnitude = code & (sign - 1), word = magnitude << drop;
    const Row small = same_bits<Row>(same_bits<Floats>(word + first) - float_of(first));
    Row bits = word < int32_t(NORMAL) ? small : word + rebias;
    if (form.infinity != form.largest) bits = magnitude == form.infinity ? Row{} + int32_t(INFINITE) : bits;
    if (form.nan >= 0) bits = magnitude > form.infinity ? Row{} + int32_t(QUIET) : bits;
    return same_bits<Floats>(bits | (code & sign) << (31 - form.exponent - form.mantissa));
}

// Eight codes of `width` bits, in bytes, moved together into the low bytes of a word; and the reverse.
template <int width> static inline uint64_t packed(uint64_t x) {
    x = (x & 0x00ff00ff00ff00ff) | (x & 0xff00ff00ff00ff00) >> (8 - width);
    x = (x & 0x0000ffff0000ffff) | (x & 0xffff0000ffff0000) >> 2 * (8 - width);
    return (x & 0x00000000ffffffff) | (x & 0xffffffff00000000) >> 4 * (8 - width);
}

template <int width> static inline uint64_t unpacked(uint64_t x) {
    constexpr uint64_t four = (uint64_t(1) << 4 * width) - 1, two = ((uint64_t(1) << 2 * width) - 1) * 0x100000001;
    constexpr uint64_t one = ((uint64_t(1) << width) - 1) * 0x0001000100010001;
    x = (x & four) | (x & four << 4 * width) << 4 * (8 - width);
    x = (x & two) | (x & two << 2 * width) << 2 * (8 - width);
    return (x & one) | (x & one << width) << (8 - width);
}

// A copy of six bytes to a word would be two stores and a load, which waits for both.
template <int n> static inline uint64_t load_bytes(const uint8_t *p) {
    uint32_t low;
    memcpy(&low, p, 4);
    uint64_t word = low;
    for (int i = 4; i < n; i++) word |= uint64_t(p[i]) << 8 * i;
    return word;
}

template <bool floats, int width>
static void encode_part(const Value *x, Cursor cursor, int64_t group, int64_t end, int32_t emax, int32_t threshold,
                        const Format &form, uint8_t *scales, uint8_t *codes) {
    for (; group < end; group++) {
        Group values;
        cursor.load(x, values);
        bool plain;
        const uint8_t scale = scales[group] = scale_of(values, emax, threshold, form.nan < 0, plain);
        const Scaling by(BIAS - scale);
        for (int64_t i = 0; i < SECTORS; i++) {
            Row code = {};
            if (plain) code = encoded<floats, true>(values[i], form, by);
            else if (scale < NAN_SCALE) code = encoded<floats, false>(values[i], form, by);
            uint64_t word = packed<width>(narrowed(code));
            memcpy(codes + (SECTORS * group + i) * width, &word, width);
        }
    }
}

template <bool floats, int width>
static void decode_part(const uint8_t *codes, const uint8_t *scales, Cursor cursor, int64_t group, int64_t end,
                        const Format &form, Value *x) {
    for (; group < end; group++) {
        const Scaling by(int32_t(scales[group]) - BIAS);
        const int32_t none = scales[group] == NAN_SCALE ? -1 : 0;
        Group values;
        for (int64_t i = 0; i < SECTORS; i++) {
            uint64_t word = unpacked<width>(load_bytes<width>(codes + (SECTORS * group + i) * width));
            Row bits = same_bits<Row>(by(decoded<floats>(widened(word), form)));
            const Row magnitude = bits & int32_t(MAGNITUDE);
            bits = magnitude < int32_t(NORMAL) ? bits ^ magnitude : bits;
            bits = (magnitude > int32_t(INFINITE)) | none ? Row{} + int32_t(QUIET) : bits;
            values[i] = same_bits<Floats>(bits);
        }
        cursor.store(values, x);
    }
}

// Calls f with constants: whether elements are floats, and the width of a code.
template <class F> static void with_form(int64_t exponent, int64_t width, F f) {
    auto of = [&](auto bits) {
        if (exponent) f(std::true_type(), bits);
        else f(std::false_type(), bits);
    };
    if (width == 4) of(std::integral_constant<int, 4>());
    else if (width == 6) of(std::integral_constant<int, 6>());
    else of(std::integral_constant<int, 8>());
}

static int64_t groups_of(int64_t rows, int64_t padded) {
    constexpr int64_t BLOCK = 2 * GROUP;
    return (rows * padded + BLOCK - 1) / BLOCK * 2;
}

// Scales, and codes of `width` bits each, of rows that are padded.
EXPORT int64_t encode(const Value *x, int64_t rows, int64_t width, int64_t padded, int64_t emax, int64_t threshold,
                      int64_t exponent, int64_t mantissa, int64_t bias, int64_t largest, int64_t infinity,
                      int64_t nan, int64_t bits, uint8_t *scales, uint8_t *codes, int64_t threads) {
    const Format form{int32_t(exponent), int32_t(mantissa), int32_t(bias),
                      int32_t(largest),  int32_t(infinity), int32_t(nan)};
    with_form(exponent, bits, [&](auto floats, auto size) {
        parallel(groups_of(rows, padded), 1, LEAST / GROUP, threads, [=](int64_t group, int64_t end) {
            const Cursor cursor(rows, width, padded, group);
            encode_part<floats, size>(x, cursor, group, end, emax, threshold, form, scales, codes);
        });
    });
    return 0;
}

// The reverse.
EXPORT int64_t decode(const uint8_t *codes, const uint8_t *scales, int64_t rows, int64_t width, int64_t padded,
                      int64_t exponent, int64_t mantissa, int64_t bias, int64_t largest, int64_t infinity,
                      int64_t nan, int64_t bits, Value *x, int64_t threads) {
    const Format form{int32_t(exponent), int32_t(mantissa), int32_t(bias),
                      int32_t(largest),  int32_t(infinity), int32_t(nan)};
    with_form(exponent, bits, [&](auto floats, auto size) {
        parallel(groups_of(rows, padded), 1, LEAST / GROUP, threads, [=](int64_t group, int64_t end) {
            decode_part<floats, size>(codes, scales, Cursor(rows, width, padded, group), group, end, form, x);
        });
    });
    return 0;
}
