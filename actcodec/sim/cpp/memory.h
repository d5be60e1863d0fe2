// Memory behind the accelerator's ports: slaves, and what stands between them and the lanes.
//
// Each lane's bursts keep their order, as a single ID demands, whichever slaves they lead to. A slave may keep the order
// in which it accepted the bursts of all lanes, too: then a lane's data wait for another lane's.
#pragma once
#include <algorithm>
#include <climits>
#include <cstring>
#include <vector>
#include "random.h"
#include "rules.h"

enum { OKAY = 0, SLVERR = 2, DECERR = 3 };
enum Kind { INDEPENDENT, SHARED, CROSSBAR };     // a slave for each lane, for all, for each of two regions
enum Fairness { CHANCE, TURNS, ROTATION };       // by turns: after the last one; in rotation: another one each cycle
enum Needs { NOTHING, DATA, BURST };             // what a slave waits for at w before it takes an address
// Of a byte: WRITTEN is the tensor's or the payload's. FRESH is a byte of the table that a scan has yet to write. While a
// ring is RUNNING, TENSOR and SPACE are read; GOAL and ROOM are a tensor's and a payload's to be written; DESCRIPTOR is
// read, and REPORT to be written, by the port of the queue alone.
enum Owner : uint8_t { NOBODY, TENSOR, TABLE, WRITTEN, SPACE, FRESH, DESCRIPTOR, REPORT, GOAL, ROOM };

// How memory behaves; actcodec/sim/environment.py has the same fields in the same order.
struct MemoryBehaviour {
    int64_t kind, region;      // CROSSBAR: the bit of an address that chooses
    int64_t ordered;           // answers to all lanes come in the order of the addresses
    int64_t strict;            // reads and writes keep one order
    int64_t single;            // a beat a cycle in all, whichever way
    int64_t narrow;            // an address a cycle, of reads and of writes
    int64_t fair;              // who takes an address's turn: a Fairness
    int64_t stalls;            // CROSSBAR: a lane's next slave has to wait until the one before has answered
    int64_t reads, writes;     // bursts that a slave holds
    int64_t early;             // INDEPENDENT: beats that are taken before their address
    int64_t needs;             // INDEPENDENT: before an address is taken
    int64_t latency, jitter;   // cycles, and up to how many more
    int64_t read_errors, write_errors;  // of a thousand bursts
    int64_t pauses;            // a Pattern
    int64_t spared;            // lanes whose bursts never fail by chance, a bit each
};

struct Content {
    uint8_t *bytes, *owner;  // without owners all of it may be read and written; an error is the answer beyond it
    uint64_t origin, size;  // addresses
};

struct Burst {
    uint64_t ticket, address;
    int left;  // beats
    int64_t due;
    bool failing;
};

struct Data { uint32_t words[8], strobe; bool last; };

// What memory gives in a cycle.
struct Answer {
    bool arready, awready, wready;
    bool rvalid, rlast, bvalid;
    int rresp, bresp;
    uint32_t rdata[8];
};

class Memory {
    struct Flow { std::deque<Burst> reads, writes, answers; };  // between a slave and a lane; writes lack data
    struct Slave { std::vector<Flow> flows; int64_t reads, writes; uint64_t turn; };
    struct Lane {
        std::deque<int> reads, writes, answers;  // slaves, in the order in which they have to answer
        std::deque<Data> early;
        int64_t bursts = 0;  // whole ones among these
        Pauses ar, aw, w, r, b;
    };

    Verdict &verdict;
    Content content;
    int payload, queue;  // the ports that move payloads, and descriptors, or -1
    MemoryBehaviour behaviour{};
    Random random{0};
    std::vector<Slave> slaves;
    std::vector<Lane> lanes;
    uint64_t tickets = 0;
    int64_t cycle = 0;

    bool inside(uint64_t address) const {
        return address >= content.origin && address - content.origin <= content.size - BEAT;
    }
    int slave(int lane, uint64_t address) const {
        return behaviour.kind == INDEPENDENT ? lane : behaviour.kind == SHARED ? 0 : address >> behaviour.region & 1;
    }
    static uint64_t front(const std::deque<Burst> &bursts) { return bursts.empty() ? ULLONG_MAX : bursts.front().ticket; }

    // The ticket of the oldest burst of a kind at a slave.
    uint64_t oldest(const Slave &slave, std::deque<Burst> Flow::*kind) const {
        uint64_t found = ULLONG_MAX;
        for (const Flow &flow : slave.flows) found = std::min(found, front(flow.*kind));
        return found;
    }
    // Which slave of `lane` may go on with its oldest burst of a kind, or none.
    Burst *next(int lane, const std::deque<int> &order, std::deque<Burst> Flow::*kind) {
        if (order.empty()) return nullptr;
        Slave &s = slaves[order.front()];
        auto &bursts = s.flows[lane].*kind;
        if (bursts.empty()) return nullptr;
        Burst &burst = bursts.front();
        if ((behaviour.ordered || kind == &Flow::writes) && burst.ticket != oldest(s, kind)) return nullptr;
        if (behaviour.strict && kind != &Flow::answers
            && burst.ticket != std::min(oldest(s, &Flow::reads), oldest(s, &Flow::writes))) return nullptr;
        return &burst;
    }
    // The lane whose address a slave takes, of those in `wants`.
    int choose(Slave &s, uint32_t wants) {
        int n = lanes.size();
        uint64_t first = behaviour.fair == TURNS ? s.turn : behaviour.fair == ROTATION ? cycle : random.next();
        for (int k = 0; k < n; k++)
            if (int lane = (first + k) % n; wants >> lane & 1) return lane;
        return -1;
    }
    // The lanes whose addresses are taken in this cycle, a bit each.
    uint32_t addresses(const std::vector<Channels> &channels, Channels::Address Channels::*name, bool writing) {
        uint32_t able = 0, taken = 0;
        for (int k = 0; k < int(lanes.size()); k++) {
            Lane &lane = lanes[k];
            const Channels::Address &a = channels[k].*name;
            bool rests = (writing ? lane.aw : lane.ar).rests(a.valid);
            const auto &order = writing ? lane.answers : lane.reads;
            if (behaviour.stalls && a.valid && !order.empty() && order.back() != slave(k, a.address)) continue;
            if (writing && behaviour.needs == DATA && !channels[k].w.valid && lane.early.empty()) continue;
            if (writing && behaviour.needs == BURST && !lane.bursts) continue;
            if (!rests) able |= 1u << k;
        }
        for (int k = 0; k < int(slaves.size()); k++) {
            Slave &s = slaves[k];
            if ((writing ? s.writes : s.reads) >= (writing ? behaviour.writes : behaviour.reads)) continue;
            uint32_t mine = 0;
            for (int lane = 0; lane < int(lanes.size()); lane++) {
                const Channels::Address &a = channels[lane].*name;
                bool asks = behaviour.kind == INDEPENDENT ? lane == k : a.valid && slave(lane, a.address) == k;
                if (asks) mine |= 1u << lane;
            }
            mine &= able;
            if (behaviour.kind == INDEPENDENT || !behaviour.narrow) {
                taken |= mine;
            } else if (int lane = choose(s, mine); lane >= 0) {
                taken |= 1u << lane;
                s.turn = lane + 1;
            } else if (behaviour.kind == SHARED && able && behaviour.fair != ROTATION) {  // ready before anybody wants it
                taken |= 1u << choose(s, able);
            }
        }
        return taken;
    }

    void accept(int k, const Channels::Address &a, bool writing, Phase phase) {
        Lane &lane = lanes[k];
        int s = slave(k, a.address);
        bool chance = random.chance(writing ? behaviour.write_errors : behaviour.read_errors);
        bool failing = (chance && !(behaviour.spared >> k & 1))
                       || (!content.owner && !inside(a.address + a.length * BEAT));
        Burst burst{tickets++, a.address, a.length + 1, cycle + delay(), failing};
        Flow &flow = slaves[s].flows[k];
        (writing ? flow.writes : flow.reads).push_back(burst);
        (writing ? slaves[s].writes : slaves[s].reads)++;
        if (writing) lane.answers.push_back(s);
        (writing ? lane.writes : lane.reads).push_back(s);
        for (int beat = 0; beat < burst.left && !writing; beat++) readable(k, a.address + beat * BEAT, phase);
    }
    int64_t delay() { return behaviour.latency + (behaviour.jitter ? random.below(behaviour.jitter + 1) : 0); }

    void readable(int lane, uint64_t address, Phase phase) {
        if (!content.owner) return;
        for (int k = 0; k < BEAT && inside(address); k++) {
            uint8_t owner = content.owner[address - content.origin + k];
            if (lane == queue ? owner == DESCRIPTOR && phase == RUNNING
                : lane == payload ? owner == SPACE && (phase == DECOMPRESSING || phase == RUNNING)
                : owner == TABLE || (owner == TENSOR && (phase == COMPRESSING || phase == SCANNING || phase == RUNNING)))
                return;
        }
        verdict.wrong("ar of %d: nothing to read at %#llx", lane, (unsigned long long)address);
    }
    void write(int k, const Data &beat, Phase phase) {
        bool ring = phase == RUNNING;
        uint8_t mine = k == queue ? REPORT : k == payload ? ring ? ROOM : SPACE
                     : phase == SCANNING ? FRESH : ring ? GOAL : TENSOR;
        Lane &lane = lanes[k];
        int s = lane.writes.front();
        Flow &flow = slaves[s].flows[k];
        Burst &burst = flow.writes.front();
        for (int byte = 0; byte < BEAT; byte++) {
            if (!(beat.strobe >> byte & 1)) continue;
            uint64_t at = burst.address + byte - content.origin;
            bool scale = ring && k != queue && k != payload && content.owner && inside(burst.address)
                         && content.owner[at] == FRESH;
            if (content.owner && (!inside(burst.address) || (content.owner[at] != mine && !scale)))
                return verdict.wrong("w of %d: writes %#llx%s", k, (unsigned long long)burst.address + byte,
                                     inside(burst.address) && content.owner[at] == WRITTEN ? " once more" : "");
            if (content.owner) content.owner[at] = mine == FRESH || scale ? TABLE : WRITTEN;
            if (!burst.failing) content.bytes[at] = beat.words[byte / 4] >> byte % 4 * 8;
        }
        burst.address += BEAT;
        if (--burst.left) return;
        burst.due = cycle + delay();
        flow.answers.push_back(burst);
        flow.writes.pop_front();
        lane.writes.pop_front();
    }

public:
    std::vector<Answer> answers;
    int64_t failed_reads = 0, failed_writes = 0;  // answers with an error that a lane has got
    int64_t failed_ring = 0;                      // and the queue

    Memory(Verdict &verdict, Content content, int lanes, int payload = -1, int queue = -1)
        : verdict(verdict), content(content), payload(payload), queue(queue) {
        this->lanes.resize(lanes);
        answers.resize(lanes);
    }

    // Everything begins anew, behind a reset or while all is at rest.
    void begin(const MemoryBehaviour &chosen, uint64_t seed) {
        behaviour = chosen;
        random.state = seed;
        int count = behaviour.kind == INDEPENDENT ? lanes.size() : behaviour.kind == SHARED ? 1 : 2;
        slaves.assign(count, Slave{std::vector<Flow>(lanes.size()), 0, 0, 0});
        for (Lane &lane : lanes) {
            lane = Lane{};
            for (Pauses *pauses : {&lane.ar, &lane.aw, &lane.w, &lane.r, &lane.b})
                pauses->begin(behaviour.pauses, random);
        }
        std::fill(answers.begin(), answers.end(), Answer{});
        failed_reads = failed_writes = failed_ring = 0;
    }

    // What memory gives in this cycle, from what the lanes show at its beginning.
    void drive(int64_t now, const std::vector<Channels> &channels) {
        cycle = now;
        uint32_t ar = addresses(channels, &Channels::ar, false), aw = addresses(channels, &Channels::aw, true);
        uint64_t used = 0;  // slaves that move a beat
        for (int k = 0; k < int(lanes.size()); k++)  // what is offered stays until it is taken
            if (answers[k].rvalid) used |= uint64_t(1) << lanes[k].reads.front();
        int first = random.below(lanes.size());
        for (int turn = 0; turn < int(lanes.size()); turn++) {
            int k = (first + turn) % lanes.size();
            Lane &lane = lanes[k];
            Answer &answer = answers[k];
            answer.arready = ar >> k & 1, answer.awready = aw >> k & 1;

            bool rests = lane.r.rests();
            if (Burst *burst = next(k, lane.reads, &Flow::reads); !answer.rvalid && burst && burst->due <= cycle
                && !rests && !(behaviour.single && used >> lane.reads.front() & 1)) {
                used |= uint64_t(1) << lane.reads.front();
                answer.rvalid = true, answer.rlast = burst->left == 1;
                answer.rresp = burst->failing ? random.chance(500) ? SLVERR : DECERR : OKAY;
                if (burst->failing || !inside(burst->address)) for (uint32_t &word : answer.rdata) word = random.next();
                else memcpy(answer.rdata, content.bytes + burst->address - content.origin, BEAT);
            }
            rests = lane.b.rests();
            if (Burst *burst = next(k, lane.answers, &Flow::answers); !answer.bvalid && burst && burst->due <= cycle
                && !rests) {
                answer.bvalid = true;
                answer.bresp = burst->failing ? random.chance(500) ? SLVERR : DECERR : OKAY;
            }
        }
        for (int turn = 0; turn < int(lanes.size()); turn++) {
            int k = (first + turn) % lanes.size();
            Lane &lane = lanes[k];
            bool rests = lane.w.rests(channels[k].w.valid), known = !lane.writes.empty();
            answers[k].wready = !rests && (known ? next(k, lane.writes, &Flow::writes)
                                                     && !(behaviour.single && used >> lane.writes.front() & 1)
                                                 : int64_t(lane.early.size()) < behaviour.early);
            if (answers[k].wready && known && channels[k].w.valid) used |= uint64_t(1) << lane.writes.front();
        }
    }

    // What has moved in this cycle; whether anything has.
    bool sample(const std::vector<Channels> &channels, Phase phase) {
        bool moves = false;
        for (int k = 0; k < int(lanes.size()); k++) {
            Lane &lane = lanes[k];
            const Channels &c = channels[k];
            bool comes = c.r.valid && c.r.ready, answered = c.b.valid && c.b.ready, data = c.w.valid && c.w.ready;
            moves |= comes || answered || data || (c.ar.valid && c.ar.ready) || (c.aw.valid && c.aw.ready);
            if (comes) {
                Slave &s = slaves[lane.reads.front()];
                Burst &burst = s.flows[k].reads.front();
                (k == queue ? failed_ring : failed_reads) += answers[k].rresp != OKAY;
                answers[k].rvalid = false;
                for (uint32_t &word : answers[k].rdata) word = random.next();
                burst.address += BEAT;
                if (!--burst.left) {
                    s.flows[k].reads.pop_front();
                    lane.reads.pop_front();
                    s.reads--;
                }
            }
            if (answered) {
                Slave &s = slaves[lane.answers.front()];
                (k == queue ? failed_ring : failed_writes) += answers[k].bresp != OKAY;
                answers[k].bvalid = false;
                s.flows[k].answers.pop_front();
                lane.answers.pop_front();
                s.writes--;
            }
            if (data) {
                Data beat{{}, c.w.strobe, c.w.last};
                memcpy(beat.words, c.w.data, BEAT);
                lane.early.push_back(beat);
                lane.bursts += beat.last;
            }
            if (c.ar.valid && c.ar.ready) accept(k, c.ar, false, phase);
            if (c.aw.valid && c.aw.ready) accept(k, c.aw, true, phase);
            while (!lane.early.empty() && !lane.writes.empty()) {
                lane.bursts -= lane.early.front().last;
                write(k, lane.early.front(), phase);
                lane.early.pop_front();
            }
        }
        return moves;
    }
};
