// What Source and Sink of streams.py do, for all streams of a component, within the simulator: a callback of VPI at each
// edge of the clock, in place of some ten objects of Python's for each port. test_native.py holds the two against each
// other.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "vpi_user.h"

namespace {

enum State : int32_t { RUNNING, ENDED, STOPPED, LIMIT, CHANGED, WITHDRAWN, UNKNOWN };

constexpr int RESTS = 1024;  // cycles of a pattern that Python gives at once

struct Port {
    vpiHandle payload, valid, ready;
    size_t words;                       // of 32 bits, in a payload
    bool sink, shy, patterned;          // patterned: it rests in some cycles
    int64_t left;                       // beats to send or to receive; negative for a sink that takes what comes
    const uint32_t *next;               // a source's next beat
    bool offered = false, taking = false, driven = false, known = false;  // known: ``driven`` is what its wire has
    std::vector<uint32_t> held, beats;  // a sink's: the beat that is offered, and those that were received
    std::vector<int64_t> cycles;        // of the transfers
    int used = RESTS;
    uint8_t rests[RESTS];
};

struct Run {
    vpiHandle clk, callback = nullptr;
    int64_t limit, cycle = 0;
    int (*until)();                  // whether to stop; or null
    void (*refill)(int, uint8_t *);  // of the pattern of a port
    void (*end)();                   // called at the end of the last cycle
    State state = RUNNING;
    int culprit = 0;
    std::vector<Port> ports;
};

bool high(vpiHandle signal) {
    s_vpi_value value{};
    value.format = vpiVectorVal;
    vpi_get_value(signal, &value);
    return (value.value.vector[0].aval & ~value.value.vector[0].bval) & 1;
}

void put(vpiHandle signal, const uint32_t *words, size_t count) {
    static std::vector<s_vpi_vecval> bits;
    bits.resize(count);
    for (size_t k = 0; k < count; k++) bits[k].aval = words[k], bits[k].bval = 0;
    s_vpi_value value{};
    value.format = vpiVectorVal;
    value.value.vector = bits.data();
    vpi_put_value(signal, &value, nullptr, vpiNoDelay);
}

void wire(Port &port, bool level) {
    if (port.known && port.driven == level) return;
    uint32_t word = level;
    put(port.sink ? port.ready : port.valid, &word, 1);
    port.known = true, port.driven = level;
}

bool rests(Run &run, Port &port) {
    if (!port.patterned) return false;
    if (port.used == RESTS) {
        run.refill(&port - run.ports.data(), port.rests);
        port.used = 0;
    }
    return port.rests[port.used++];
}

void drive(Run &run) {
    for (Port &port : run.ports) {
        if (port.sink) {
            port.taking = port.shy ? port.offered : !rests(run, port);
            wire(port, port.taking);
            continue;
        }
        if (!port.offered && !rests(run, port) && port.left) {
            put(port.payload, port.next, port.words);
            port.offered = true;
        }
        wire(port, port.offered);
    }
}

void passed(Run &run, Port &port) {
    port.cycles.push_back(run.cycle);
    port.offered = false;
    if (port.left > 0) port.left--;
}

State receive(Run &run, Port &port) {
    if (!high(port.valid)) return port.offered ? WITHDRAWN : RUNNING;
    s_vpi_value value{};
    value.format = vpiVectorVal;
    vpi_get_value(port.payload, &value);
    for (size_t k = 0; k < port.words; k++) {
        if (value.value.vector[k].bval) return UNKNOWN;
        uint32_t word = value.value.vector[k].aval;
        if (port.offered && word != port.held[k]) return CHANGED;
        port.held[k] = word;
    }
    port.offered = true;
    if (port.taking) {
        port.beats.insert(port.beats.end(), port.held.begin(), port.held.end());
        passed(run, port);
    }
    return RUNNING;
}

State sample(Run &run) {
    for (Port &port : run.ports) {
        if (port.sink) {
            State state = receive(run, port);
            if (state != RUNNING) {
                run.culprit = &port - run.ports.data();
                return state;
            }
        } else if (port.offered && high(port.ready)) {
            port.next += port.words;
            passed(run, port);
        }
    }
    run.cycle++;
    if (std::all_of(run.ports.begin(), run.ports.end(), [](const Port &port) { return port.left <= 0; })) return ENDED;
    if (run.until && run.until()) return STOPPED;
    return run.cycle == run.limit ? LIMIT : RUNNING;
}

PLI_INT32 edge(p_cb_data data) {
    Run &run = *reinterpret_cast<Run *>(data->user_data);
    if (!high(run.clk)) {
        drive(run);
    } else if ((run.state = sample(run)) != RUNNING) {
        vpi_remove_cb(run.callback);
        run.callback = nullptr;
        run.end();
    }
    return 0;
}

vpiHandle named(const char *name) { return vpi_handle_by_name(const_cast<char *>(name), nullptr); }

}  // namespace

extern "C" {

Run *streams_new(const char *clk, int64_t limit, int (*until)(), void (*refill)(int, uint8_t *), void (*end)()) {
    Run *run = new Run;
    run->clk = named(clk), run->limit = limit, run->until = until, run->refill = refill, run->end = end;
    return run;
}

// Whether there are such signals. ``beats``, for a source alone, stay with the caller as long as the run lasts.
int streams_add(Run *run, const char *payload, const char *valid, const char *ready, int sink, int shy, int patterned,
                int64_t left, const uint32_t *beats) {
    Port port;
    port.payload = named(payload), port.valid = named(valid), port.ready = named(ready);
    if (!port.payload || !port.valid || !port.ready || !run->clk) return 0;
    port.words = (vpi_get(vpiSize, port.payload) + 31) / 32;
    port.sink = sink, port.shy = shy, port.patterned = patterned, port.left = left, port.next = beats;
    port.held.resize(port.words);
    run->ports.push_back(port);
    return 1;
}

// Begins at once, with a cycle whose falling edge has just been.
void streams_start(Run *run) {
    static s_vpi_time time{vpiSuppressTime, 0, 0, 0};
    static s_vpi_value value{vpiSuppressVal, {}};
    s_cb_data data{};
    data.reason = cbValueChange, data.cb_rtn = edge, data.obj = run->clk, data.time = &time, data.value = &value;
    data.user_data = reinterpret_cast<PLI_BYTE8 *>(run);
    run->callback = vpi_register_cb(&data);
    drive(*run);
}

void streams_delete(Run *run) {
    for (Port &port : run->ports) wire(port, false);
    if (run->callback) vpi_remove_cb(run->callback);
    delete run;
}

int streams_state(const Run *run) { return run->state; }
int streams_culprit(const Run *run) { return run->culprit; }
int64_t streams_cycle(const Run *run) { return run->cycle; }
int64_t streams_count(const Run *run, int port) { return run->ports[port].cycles.size(); }
const int64_t *streams_cycles(const Run *run, int port) { return run->ports[port].cycles.data(); }
const uint32_t *streams_beats(const Run *run, int port) { return run->ports[port].beats.data(); }

}
