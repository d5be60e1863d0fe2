// An accelerator among memory, DMA engine and host, each of which may rest in any cycle, and checks of every rule of its
// ports in every cycle. actcodec/sim/environment.py calls the functions at the end.
//
// Vtop comes from Verilator, ALL_PINS from actcodec/sim/accelerator.py: PINS(port) for each port to memory.
#include <memory>
#include "Vtop.h"
#include "verilated.h"
#include "random.h"
#include "rules.h"
#include "memory.h"
#include "streams.h"

enum Outcome { PAUSED, INTERRUPTED, STUCK, BROKEN };

// The pins of a port to memory. An address has one C++ type or another, by its width.
template<class Address> struct Pins {
    CData &arvalid, &arready; Address &araddr; CData &arlen, &arsize, &arburst, &arid, &arcache, &arprot;
    CData &rvalid, &rready; VlWide<8> &rdata; CData &rresp, &rlast;
    CData &awvalid, &awready; Address &awaddr; CData &awlen, &awsize, &awburst, &awid, &awcache, &awprot;
    CData &wvalid, &wready; VlWide<8> &wdata; IData &wstrb; CData &wlast;
    CData &bvalid, &bready, &bresp;

    Channels look() const {
        return {{araddr, arlen, arsize, arburst, arid, arcache, arprot, bool(arvalid), bool(arready)},
                {awaddr, awlen, awsize, awburst, awid, awcache, awprot, bool(awvalid), bool(awready)},
                {&wdata[0], wstrb, bool(wlast), bool(wvalid), bool(wready)},
                {bool(rvalid), bool(rready)}, {bool(bvalid), bool(bready)}};
    }
    void drive(const Answer &a) {
        arready = a.arready, awready = a.awready, wready = a.wready;
        rvalid = a.rvalid, rlast = a.rlast, rresp = a.rresp;
        memcpy(&rdata[0], a.rdata, BEAT);
        bvalid = a.bvalid, bresp = a.bresp;
    }
};

// Cycles of the first and the last transfer, and how many there were.
struct Traffic {
    int64_t first, last, count;
    void note(bool moves, int64_t cycle) {
        if (!moves) return;
        if (!count++) first = cycle;
        last = cycle;
    }
};

struct Environment {
    Verdict verdict;
    Random random;
    std::unique_ptr<Vtop> top;  // in the default context, as are the lanes, libraries to Verilator
    std::vector<Pins<std::remove_reference_t<decltype(Vtop::m_axi_0_araddr)>>> pins;
    std::vector<Master> masters;
    std::vector<Channels> channels;
    std::unique_ptr<Memory> memory;
    Sink sink{verdict};
    Source source{verdict};
    Pauses bus[5];  // the host's: aw, w, b, ar, r
    Phase phase = IDLE;
    bool giving_up = false;
    int64_t cycle = 0, moved = 0;
    std::vector<Traffic> reads, writes;  // beats of each lane
    Traffic sent{}, received{};          // packets, by the accelerator

    // Flip-flops begin with random bits, or with zeros where the seed is 0.
    // `payload` is the port that moves payloads, `queue` that of descriptors, or -1.
    Environment(uint64_t seed, Content content, int64_t outstanding, int payload, int queue, bool stores)
        : random{seed} {
        auto *context = Verilated::threadContextp();
        context->randReset(seed ? 2 : 0);
        context->randSeed(1 + random.below(INT32_MAX));
        top = std::make_unique<Vtop>();
        #define PINS(p) pins.push_back({ \
            top->p##arvalid, top->p##arready, top->p##araddr, top->p##arlen, top->p##arsize, top->p##arburst, \
            top->p##arid, top->p##arcache, top->p##arprot, \
            top->p##rvalid, top->p##rready, top->p##rdata, top->p##rresp, top->p##rlast, \
            top->p##awvalid, top->p##awready, top->p##awaddr, top->p##awlen, top->p##awsize, top->p##awburst, \
            top->p##awid, top->p##awcache, top->p##awprot, \
            top->p##wvalid, top->p##wready, top->p##wdata, top->p##wstrb, top->p##wlast, \
            top->p##bvalid, top->p##bready, top->p##bresp});
        ALL_PINS
        for (int k = 0; k < int(pins.size()); k++)  // a descriptor has 16 beats
            masters.emplace_back(verdict, k, k == queue ? 16 : outstanding, k == payload,
                                 stores || k == payload || k == queue);
        channels.resize(pins.size());
        reads.resize(pins.size()), writes.resize(pins.size());
        memory = std::make_unique<Memory>(verdict, content, int(pins.size()), payload, queue);
        for (Pauses &pauses : bus) pauses.begin(NEVER, random);
        reset(2);
    }
    ~Environment() { top->final(); }

    // A reset in the middle of whatever it may be.
    void reset(int64_t cycles) {
        top->rst = 1;
        top->s_axil_awvalid = top->s_axil_wvalid = top->s_axil_arvalid = 0;
        top->s_axil_bready = top->s_axil_rready = enters().valid = leaves().ready = 0;
        for (auto &pin : pins) pin.drive({});
        for (int64_t end = cycle + cycles; cycle < end; cycle++) {
            top->clk = 0, top->eval();
            top->clk = 1, top->eval();
        }
        top->rst = 0;
        for (Master &master : masters) master.reset();
        memory->begin({}, 0);
        sink.reset(), source.reset();
        phase = IDLE;
        giving_up = false;
    }

#ifdef NO_STREAMS
    struct { VlWide<PACKET / 4> data; VlWide<PACKET / 32> keep; CData last, valid, ready; } nothing[2]{};
    Stream<VlWide<PACKET / 4>, VlWide<PACKET / 32>> stream(int way) {
        auto &n = nothing[way];
        return {n.data, n.keep, n.last, n.valid, n.ready};
    }
    Stream<VlWide<PACKET / 4>, VlWide<PACKET / 32>> leaves() { return stream(0); }
    Stream<VlWide<PACKET / 4>, VlWide<PACKET / 32>> enters() { return stream(1); }
#else
    Stream<decltype(Vtop::m_axis_tdata), decltype(Vtop::m_axis_tkeep)> leaves() {
        return {top->m_axis_tdata, top->m_axis_tkeep, top->m_axis_tlast, top->m_axis_tvalid, top->m_axis_tready};
    }
    Stream<decltype(Vtop::s_axis_tdata), decltype(Vtop::s_axis_tkeep)> enters() {
        return {top->s_axis_tdata, top->s_axis_tkeep, top->s_axis_tlast, top->s_axis_tvalid, top->s_axis_tready};
    }
#endif

    // One cycle; `look` is called before the edge, when everything has settled.
    template<class Look> void step(Look look) {
        auto out = leaves();
        auto in = enters();
        verdict.cycle = cycle;
        for (size_t k = 0; k < pins.size(); k++) channels[k] = pins[k].look();
        memory->drive(cycle, channels);
        for (size_t k = 0; k < pins.size(); k++) pins[k].drive(memory->answers[k]);
        sink.drive(out);
        source.drive(in);
        top->clk = 0;
        top->eval();
        for (size_t k = 0; k < pins.size(); k++) {
            channels[k] = pins[k].look();
            masters[k].look(channels[k], phase);
        }
        bool moves = memory->sample(channels, phase);
        moves |= sink.sample(out, phase, giving_up);
        moves |= source.sample(in, phase);
        for (size_t k = 0; k < pins.size(); k++) {
            reads[k].note(channels[k].r.valid && channels[k].r.ready, cycle);
            writes[k].note(channels[k].w.valid && channels[k].w.ready, cycle);
        }
        sent.note(out.valid && out.ready, cycle);
        received.note(in.valid && in.ready, cycle);
        if (moves) moved = cycle;
        look();
        top->clk = 1;
        top->eval();
        cycle++;
    }

    // One access of the host; the response, or -1 without one.
    int access(bool write, uint32_t address, uint32_t strobes, uint32_t &value) {
        bool asks = true, data = write, asked = false, sent = !write, answered = false;
        int response = -1;
        int64_t last = cycle + 20000;
        bool &taken = asked;
        auto offer = [&](CData &valid, bool wanted, bool rests) { valid = valid || (wanted && !rests); };
        CData &valid = write ? top->s_axil_awvalid : top->s_axil_arvalid;
        CData &ready = write ? top->s_axil_awready : top->s_axil_arready;
        CData &accepts = write ? top->s_axil_bready : top->s_axil_rready;
        CData &comes = write ? top->s_axil_bvalid : top->s_axil_rvalid;
        (write ? top->s_axil_awaddr : top->s_axil_araddr) = address;
        if (write) top->s_axil_wdata = value, top->s_axil_wstrb = strobes;
        Stays<std::tuple<uint32_t, int>> stays;
        while (!answered && cycle < last && verdict.what.empty()) {
            offer(valid, asks, bus[write ? 0 : 3].rests());
            if (write) offer(top->s_axil_wvalid, data, bus[1].rests());
            accepts = !bus[write ? 2 : 4].rests(comes);
            bool went, gave;
            step([&] {
                went = valid && ready;
                gave = write && top->s_axil_wvalid && top->s_axil_wready;
                response = write ? top->s_axil_bresp : top->s_axil_rresp;
                uint32_t word = write ? 0 : top->s_axil_rdata;
                stays.look(verdict, write ? "s_axil b" : "s_axil r", 0, comes, accepts, {word, response});
                if (comes && !(taken && sent)) verdict.wrong("s_axil: an answer that nobody waits for");
                if (write ? top->s_axil_rvalid : top->s_axil_bvalid) verdict.wrong("s_axil: an answer on its own");
                answered = comes && accepts;
                if (answered && !write) value = word;
            });
            if (went) asks = false, taken = true, valid = 0;
            if (gave) data = false, sent = true, top->s_axil_wvalid = 0;
        }
        accepts = 0;
        return answered ? response : -1;
    }

    // Until the interrupt, or for some cycles.
    Outcome run(int64_t cycles, int64_t patience) {
        moved = cycle;
        for (int64_t end = cycle + cycles; cycle < end;) {
            if (!verdict.what.empty()) return BROKEN;
            if (top->INTERRUPT) return INTERRUPTED;
            if (cycle - moved > patience) return STUCK;
            step([&] {
                if (top->s_axil_bvalid || top->s_axil_rvalid) verdict.wrong("s_axil: an answer on its own");
            });
        }
        return verdict.what.empty() ? top->INTERRUPT ? INTERRUPTED : PAUSED : BROKEN;
    }

    // Everything is at rest, or should be.
    void rest() {
        for (size_t k = 0; k < masters.size(); k++)
            if (!masters[k].at_rest()) verdict.wrong("lane %zu: memory still owes it something", k);
        if (sink.begun) verdict.wrong("m_axis: a frame has no end");
        source.dropping = source.begun && (source.dropping || giving_up);
        if (source.begun && !source.dropping) verdict.wrong("s_axis: a frame is not taken to its end");
        phase = IDLE;
        giving_up = false;
    }
};

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT Environment *environment_create(uint64_t seed, uint8_t *bytes, uint8_t *owner, uint64_t origin, uint64_t size,
                                       int64_t outstanding, int payload, int queue, int stores) {
    return new Environment(seed, {bytes, owner, origin, size}, outstanding, payload, queue, stores);
}
EXPORT void environment_destroy(Environment *e) { delete e; }
EXPORT void environment_reset(Environment *e) { e->reset(2 + e->random.below(3)); }
// How all that is around the accelerator behaves from now on: memory, streams (patterns of sink and source, and bytes a
// cycle that both carry), host.
EXPORT void environment_begin(Environment *e, const MemoryBehaviour *memory, int64_t sink,
                              int64_t source, int64_t host, double rate, uint64_t seed) {
    Random seeds{seed};
    e->memory->begin(*memory, seeds.next());
    e->sink.begin(sink, seeds);
    e->source.begin(source, seeds);
    for (Pauses &pauses : e->bus) pauses.begin(host, seeds);
    e->sink.bucket.rate = e->source.bucket.rate = rate;
}
EXPORT void environment_phase(Environment *e, int phase) {
    if (phase == IDLE) e->rest();
    else e->phase = Phase(phase);
}
EXPORT void environment_give_up(Environment *e) { e->giving_up = true; }
EXPORT int environment_access(Environment *e, int write, uint32_t address, uint32_t strobes, uint32_t *value) {
    return e->access(write, address, strobes, *value);
}
EXPORT int environment_run(Environment *e, int64_t cycles, int64_t patience) { return e->run(cycles, patience); }
EXPORT void environment_send(Environment *e, int64_t beats, const uint8_t *bytes, const uint8_t *keep,
                             const uint8_t *last) {
    for (int64_t k = 0; k < beats; k++) e->source.push(bytes + k * PACKET, keep + k * PACKET, last[k]);
}
// Bytes of the oldest frame that has come, or -1; they are copied, and the frame dropped, if `bytes` is given.
EXPORT int64_t environment_take(Environment *e, uint8_t *bytes) {
    auto &done = e->sink.done;
    if (done.empty()) return -1;
    int64_t size = done.front().size();
    if (bytes) {
        memcpy(bytes, done.front().data(), size);
        done.pop_front();
    }
    return size;
}
// cycle, interrupt, whether nothing waits at s_axis, whether a frame there has begun, answers with errors: of lanes to reads and to
// writes, and of the queue.
EXPORT void environment_state(Environment *e, int64_t *found) {
    int64_t state[] = {e->cycle, e->top->INTERRUPT, e->source.empty(), e->source.begun,
                       e->memory->failed_reads, e->memory->failed_writes, e->memory->failed_ring};
    std::copy(std::begin(state), std::end(state), found);
}
EXPORT const char *environment_verdict(Environment *e) { return e->verdict.what.c_str(); }
// Memory read, memory written (by the port `k`), packets sent and received.
EXPORT void environment_traffic(Environment *e, int k, Traffic *found) {
    const Traffic all[] = {e->reads[k], e->writes[k], e->sent, e->received};
    std::copy(std::begin(all), std::end(all), found);
}
