// Runs a component whose ports are streams, for one tensor.
//
// Vtop comes from Verilator; actcodec/sim/streams.py defines INPUTS and OUTPUTS (streams), CONSTANTS and RESULTS (other
// ports) as P(0, a) P(1, b) ... for ports called a, b, ...
#include <cstdint>
#include <cstring>
#include "Vtop.h"
#include "verilated.h"

// One stream: beats of whole 32-bit words, how many have passed and how many may, cycles of the first and the last.
struct Port { uint32_t *beats; int64_t count, capacity, first, last; };

// Payloads are little-endian integers of one to eight bytes, or arrays of words.
template<class T> static constexpr size_t words(const T &) { return (sizeof(T) + 3) / 4; }

template<class T, class Bit> static void offer(const Port &port, T &payload, Bit &valid) {
    valid = port.count < port.capacity;
    if (valid) memcpy((void *)&payload, port.beats + port.count * words(payload), sizeof payload);
}

template<class T> static void take(const Port &port, const T &payload) {
    memcpy(port.beats + port.count * words(payload), (const void *)&payload, sizeof payload);
}

static void note(Port &port, int64_t cycle) {
    if (!port.count++) port.first = cycle;
    port.last = cycle;
}

// A component without registers has neither clock nor reset.
template<class T> static auto drive(T &top, int clk, int rst, int) -> decltype(void(top.clk)) {
    top.clk = clk;
    top.rst = rst;
}
template<class T> static void drive(T &, int, int, long) {}

template<class T> static void step(T &top, int clk, int rst = 0) {
    drive(top, clk, rst, 0);
    top.eval();
}

// Ends when nothing has moved for `patience` cycles.
extern "C" __attribute__((visibility("default")))
void run(Port *inputs, Port *outputs, const uint32_t *constants, uint32_t *results, int64_t patience) {
    VerilatedContext context;
    Vtop top{&context};
    #define P(k, name) top.name = constants[k];
    CONSTANTS
    #undef P
    for (int half = 0; half < 4; half++) step(top, half & 1, 1);
    for (int64_t cycle = 0, moved = 0; cycle - moved < patience; cycle++) {
        #define P(k, name) offer(inputs[k], top.name##___05Fpayload, top.name##___05Fvalid);
        INPUTS
        #undef P
        #define P(k, name) top.name##___05Fready = outputs[k].count < outputs[k].capacity;
        OUTPUTS
        #undef P
        step(top, 0);
        #define P(k, name) if (top.name##___05Fvalid && top.name##___05Fready) { \
            note(inputs[k], cycle); moved = cycle; }
        INPUTS
        #undef P
        #define P(k, name) if (top.name##___05Fvalid && top.name##___05Fready) { \
            take(outputs[k], top.name##___05Fpayload); note(outputs[k], cycle); moved = cycle; }
        OUTPUTS
        #undef P
        step(top, 1);
    }
    #define P(k, name) results[k] = top.name;
    RESULTS
    #undef P
    top.final();
}
