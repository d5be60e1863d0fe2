// The world around a simulated accelerator: memory behind its AXI4 ports, a DMA engine at its streams, a host.
//
// Vtop comes from Verilator, PINS(port) for each of its ports from actcodec/sim/simulator.py.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>
#include "Vtop.h"
#include "verilated.h"

constexpr int BEAT = 32, PACKET = 128;  // bytes
enum { OKAY = 0, DECERR = 3 };

struct Memory { uint8_t *bytes; uint64_t size; };

// Cycles of the first and the last transfer, and how many there were.
struct Traffic { int64_t first, last, count; };

static void note(Traffic &traffic, int64_t cycle) {
    if (!traffic.count++) traffic.first = cycle;
    traffic.last = cycle;
}

// Memory behind one port. Bursts are answered in order, the first beat `latency` cycles after the burst was asked for,
// a beat a cycle. Beyond the end of memory the answer is DECERR. What several ports share of a slave is a Slave's.
struct Port {
    struct Pins {
        CData &arvalid, &arready; QData &araddr; CData &arlen;
        CData &rvalid, &rready; VlWide<8> &rdata; CData &rresp, &rlast;
        CData &awvalid, &awready; QData &awaddr; CData &awlen;
        CData &wvalid, &wready; VlWide<8> &wdata; IData &wstrb; CData &wlast;
        CData &bvalid, &bready, &bresp;
    };
    struct Burst { uint64_t address; int beats; int64_t due; bool failed; };
    struct Data { uint8_t bytes[BEAT]; uint32_t strobe; bool last; };

    Pins pin;
    Memory memory;
    int64_t latency;
    Traffic read{}, written{};
    std::deque<Burst> reads, writes, answers;
    std::deque<Data> data;

    bool inside(uint64_t address) const { return address + BEAT <= memory.size; }

    // What may pass in this cycle: addresses, beats that were read, beats to be written.
    void drive(int64_t cycle, bool asks = true, bool offers = true, bool reading = true, bool writing = true) {
        pin.arready = asks, pin.awready = offers, pin.wready = writing;
        pin.rvalid = reading && !reads.empty() && reads.front().due <= cycle;
        if (pin.rvalid) {
            const Burst &burst = reads.front();
            bool good = inside(burst.address);
            if (good) memcpy((void *)&pin.rdata, memory.bytes + burst.address, BEAT);
            pin.rresp = good ? OKAY : DECERR;
            pin.rlast = burst.beats == 1;
        }
        pin.bvalid = !answers.empty() && answers.front().due <= cycle;
        if (pin.bvalid) pin.bresp = answers.front().failed ? DECERR : OKAY;
    }

    // Whether anything moved; `broken` when a burst of writes is not as long as was said.
    bool sample(int64_t cycle, bool &broken) {
        bool asks = pin.arvalid && pin.arready, comes = pin.rvalid && pin.rready;
        bool offers = pin.awvalid && pin.awready, writes_beat = pin.wvalid && pin.wready;
        bool answered = pin.bvalid && pin.bready;
        if (comes) {
            Burst &burst = reads.front();
            burst.address += BEAT;
            if (!--burst.beats) reads.pop_front();
            note(read, cycle);
        }
        if (asks) reads.push_back({pin.araddr, pin.arlen + 1, cycle + latency, false});
        if (offers) writes.push_back({pin.awaddr, pin.awlen + 1, 0, false});
        if (writes_beat) {
            Data beat;
            memcpy(beat.bytes, (const void *)&pin.wdata, BEAT);
            beat.strobe = pin.wstrb;
            beat.last = pin.wlast;
            data.push_back(beat);
            note(written, cycle);
        }
        if (answered) answers.pop_front();
        while (!writes.empty() && !data.empty()) {
            Burst &burst = writes.front();
            const Data &beat = data.front();
            if (!inside(burst.address)) burst.failed = true;
            else for (int k = 0; k < BEAT; k++) if (beat.strobe >> k & 1) memory.bytes[burst.address + k] = beat.bytes[k];
            burst.address += BEAT;
            burst.beats--;
            broken |= beat.last != !burst.beats;
            if (!burst.beats) {
                answers.push_back({0, 0, cycle + latency, burst.failed});
                writes.pop_front();
            }
            data.pop_front();
        }
        return asks || comes || offers || writes_beat || answered;
    }
};

// One slave for all ports: it takes an address of each kind a cycle, from one port after the other, and moves a beat each
// way, reads in the order in which they were asked for, write data in that of their addresses.
struct Slave {
    std::deque<size_t> reads, writes;  // whose bursts are under way
    size_t turn = 0;

    void drive(std::vector<Port> &ports, int64_t cycle) {
        size_t asks = ports.size(), offers = ports.size();
        for (size_t k = 0; k < ports.size(); k++) {
            size_t port = (turn + k) % ports.size();
            if (asks == ports.size() && ports[port].pin.arvalid) asks = port;
            if (offers == ports.size() && ports[port].pin.awvalid) offers = port;
        }
        turn = (turn + 1) % ports.size();
        for (size_t k = 0; k < ports.size(); k++)
            ports[k].drive(cycle, k == asks, k == offers, !reads.empty() && reads.front() == k,
                           !writes.empty() && writes.front() == k);
    }

    // Before the ports do so.
    void sample(std::vector<Port> &ports) {
        for (size_t k = 0; k < ports.size(); k++) {
            auto &pin = ports[k].pin;
            if (pin.rvalid && pin.rready && pin.rlast) reads.pop_front();
            if (pin.wvalid && pin.wready && pin.wlast) writes.pop_front();
            if (pin.arvalid && pin.arready) reads.push_back(k);
            if (pin.awvalid && pin.awready) writes.push_back(k);
        }
    }
};

// Bytes that may pass: `rate` more in each cycle, and what was not used for at most two packets.
struct Bucket {
    double rate, level = 0;
    void fill() { level = std::min(level + rate, 2.0 * PACKET); }
    bool full() const { return level >= PACKET; }
};

struct World {
    // In the default context, which outlives all worlds: that is where the lanes, libraries to Verilator, go as well.
    std::unique_ptr<Vtop> top{new Vtop};
    std::vector<Port> ports;
    std::unique_ptr<Slave> slave;  // if all ports lead to one
    Traffic sent{}, received{};  // by the accelerator: packets
    Bucket sink, source;
    std::deque<std::vector<uint8_t>> frames, done;  // to the accelerator, from it
    std::vector<uint8_t> frame;
    size_t at = 0;  // in the first of the frames
    int64_t cycle = 0, moved = 0;
    bool broken = false;

    World(Memory memory, int64_t latency, double rate, bool shared) : sink{rate}, source{rate} {
        if (shared) slave = std::make_unique<Slave>();
        #define PINS(port) ports.push_back({{ \
            top->port##arvalid, top->port##arready, top->port##araddr, top->port##arlen, \
            top->port##rvalid, top->port##rready, top->port##rdata, top->port##rresp, top->port##rlast, \
            top->port##awvalid, top->port##awready, top->port##awaddr, top->port##awlen, \
            top->port##wvalid, top->port##wready, top->port##wdata, top->port##wstrb, top->port##wlast, \
            top->port##bvalid, top->port##bready, top->port##bresp}, memory, latency});
        ALL_PINS
        top->rst = 1;
        step();
        step();
        top->rst = 0;
        cycle = 0;
    }
    ~World() { top->final(); }

    // One cycle; `look` is called before the edge, when everything has settled.
    template<class Look> void step(Look look) {
        if (slave) slave->drive(ports, cycle);
        else for (Port &port : ports) port.drive(cycle);
        sink.fill();
        source.fill();
        top->m_axis_tready = sink.full();
        top->s_axis_tvalid = !frames.empty() && source.full();
        size_t size = 0;
        if (top->s_axis_tvalid) {
            const auto &bytes = frames.front();
            size = std::min<size_t>(PACKET, bytes.size() - at);
            memset((void *)&top->s_axis_tdata, 0, PACKET);
            memcpy((void *)&top->s_axis_tdata, bytes.data() + at, size);
            for (size_t word = 0; word < PACKET / 32; word++) {
                size_t count = size > 32 * word ? std::min<size_t>(32, size - 32 * word) : 0;
                top->s_axis_tkeep[word] = uint32_t((uint64_t{1} << count) - 1);
            }
            top->s_axis_tlast = at + size == bytes.size();
        }
        top->clk = 0;
        top->eval();

        bool moves = false;
        if (slave) slave->sample(ports);
        for (Port &port : ports) moves |= port.sample(cycle, broken);
        if (top->s_axis_tvalid && top->s_axis_tready) {
            note(received, cycle);
            moves = true;
            source.level -= size;
            at += size;
            if (top->s_axis_tlast) {
                frames.pop_front();
                at = 0;
            }
        }
        if (top->m_axis_tvalid && top->m_axis_tready) {
            int count = 0;
            while (count < PACKET && top->m_axis_tkeep[count / 32] >> count % 32 & 1) count++;
            for (int k = count; k < PACKET; k++) broken |= top->m_axis_tkeep[k / 32] >> k % 32 & 1;
            broken |= count < PACKET && !top->m_axis_tlast;
            auto *bytes = (const uint8_t *)(const void *)&top->m_axis_tdata;
            frame.insert(frame.end(), bytes, bytes + count);
            note(sent, cycle);
            moves = true;
            sink.level -= count;
            if (top->m_axis_tlast) {
                done.push_back(std::move(frame));
                frame.clear();
            }
        }
        if (moves) moved = cycle;
        look();
        top->clk = 1;
        top->eval();
        cycle++;
    }

    void step() { step([] {}); }

    // One access of the host; the response, or -1 without one.
    int access(bool write, uint32_t address, uint32_t &value) {
        CData &first = write ? top->s_axil_awvalid : top->s_axil_arvalid;
        CData &accepted = write ? top->s_axil_awready : top->s_axil_arready;
        top->s_axil_awaddr = top->s_axil_araddr = address;
        top->s_axil_wdata = value;
        top->s_axil_wstrb = 15;
        first = 1;
        top->s_axil_wvalid = write;
        top->s_axil_bready = top->s_axil_rready = 1;
        bool answered = false;
        int response = -1;
        for (int patience = 1000; patience && !answered; patience--) {
            bool taken, data;
            step([&] {
                taken = first && accepted;
                data = top->s_axil_wvalid && top->s_axil_wready;
                answered = write ? top->s_axil_bvalid : top->s_axil_rvalid;
                if (!answered) return;
                response = write ? top->s_axil_bresp : top->s_axil_rresp;
                value = top->s_axil_rdata;
            });
            if (taken) first = 0;
            if (data) top->s_axil_wvalid = 0;
        }
        top->s_axil_bready = top->s_axil_rready = 0;
        return response;
    }
};

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT World *world_create(uint8_t *memory, uint64_t size, int64_t latency, double rate, int shared) {
    return new World{{memory, size}, latency, rate, bool(shared)};
}
EXPORT void world_destroy(World *world) { delete world; }
EXPORT int world_access(World *world, int write, uint32_t address, uint32_t *value) {
    return world->access(write, address, *value);
}
EXPORT void world_send(World *world, const uint8_t *bytes, uint64_t size) {
    world->frames.emplace_back(bytes, bytes + size);
}
// Bytes of the oldest frame that has come, or -1; they are copied, and the frame dropped, if `bytes` is given.
EXPORT int64_t world_take(World *world, uint8_t *bytes) {
    if (world->done.empty()) return -1;
    const auto &frame = world->done.front();
    int64_t size = frame.size();
    if (bytes) {
        memcpy(bytes, frame.data(), size);
        world->done.pop_front();
    }
    return size;
}
// Runs until the interrupt; false if nothing moves for `patience` cycles, or what moves breaks the rules.
EXPORT int world_wait(World *world, int64_t patience) {
    world->moved = world->cycle;
    while (!world->top->INTERRUPT) {
        world->step();
        if (world->broken || world->cycle - world->moved > patience) return 0;
    }
    return 1;
}
EXPORT int64_t world_cycle(World *world) { return world->cycle; }
// Memory read, memory written (of the port `k`), packets sent and received.
EXPORT void world_traffic(World *world, int k, Traffic *found) {
    const Port &port = world->ports[k];
    found[0] = port.read;
    found[1] = port.written;
    found[2] = world->sent;
    found[3] = world->received;
}
