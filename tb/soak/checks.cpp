// Shows that every check of the environment catches what it is for, and that its memories keep to what they say: scripted
// and random masters in the place of an accelerator. Prints what went unseen, or wrong.
#include <functional>
#include "memory.h"
#include "streams.h"

using Cycle = std::function<void(Channels &)>;

static Channels::Address address(uint64_t at, int beats, bool ready = true) {
    return {at, beats - 1, 5, 1, 0, 3, 2, true, ready};
}

struct Case { const char *expected; std::vector<Cycle> cycles; Phase phase = DECOMPRESSING; bool stores = true; };

static const uint32_t words[8] = {}, others[8] = {1};

static void w(Channels &c, bool last, bool ready = true) { c.w = {words, ~0u, last, true, ready}; }

static const std::vector<Case> cases = {
    {"ar of 0: valid withdrawn", {[](Channels &c) { c.ar = address(0, 1, false); }, [](Channels &c) {}}},
    {"ar of 0: changed", {[](Channels &c) { c.ar = address(0, 1, false); }, [](Channels &c) { c.ar = address(32, 1); }}},
    {"aw of 0: changed", {[](Channels &c) { c.aw = address(0, 1, false); }, [](Channels &c) { c.aw = address(0, 2); }}},
    {"w of 0: changed", {[](Channels &c) { w(c, false, false); }, [](Channels &c) { w(c, true); }}},
    {"w of 0: changed", {[](Channels &c) { w(c, true, false); }, [](Channels &c) { w(c, true); c.w.data = others; }}},
    {"w of 0: valid withdrawn", {[](Channels &c) { w(c, true, false); }, [](Channels &c) {}}},
    {"beats at 0x10", {[](Channels &c) { c.ar = address(16, 1); }}},
    {"9 beats at 0", {[](Channels &c) { c.ar = address(0, 9); }}},
    {"cross 256 bytes", {[](Channels &c) { c.aw = address(0xfe0, 2); }}},
    {"size 4", {[](Channels &c) { c.ar = address(0, 1), c.ar.size = 4; }}},
    {"burst 2", {[](Channels &c) { c.aw = address(0, 1), c.aw.burst = 2; }}},
    {"id 1", {[](Channels &c) { c.ar = address(0, 1), c.ar.id = 1; }}},
    {"16 beats under way, 1 more", {[](Channels &c) { c.ar = address(0, 8); }, [](Channels &c) { c.ar = address(0, 8); },
                                    [](Channels &c) { c.ar = address(0, 1); }}},
    {"not ready for what it asked for", {[](Channels &c) { c.ar = address(0, 1); }, [](Channels &c) { c.r.ready = false; }}},
    {"1 beats of a burst of 2", {[](Channels &c) { c.aw = address(0, 2), w(c, true); }}},
    {"2 beats of a burst of 1", {[](Channels &c) { c.aw = address(0, 1), w(c, false); }, [](Channels &c) { w(c, true); }}},
    {"an address waits for data", {[](Channels &c) { c.aw = address(0, 1); }, {}, {}, {}, {}, {}}},
    {"an address waits for data", {[](Channels &c) { c.aw = address(0, 2), w(c, false); }, {}}},
    {"moves while idle", {[](Channels &c) { c.ar = address(0, 1); }}, IDLE},
    {"moves while idle", {[](Channels &c) { w(c, true); }}, IDLE},
    {"writes", {[](Channels &c) { c.aw = address(0, 1); }}, COMPRESSING},
    {"", {[](Channels &c) { c.aw = address(0, 2), w(c, false); }, {}, {}, {}, {}, {}, [](Channels &c) { w(c, true); }},
     DECOMPRESSING, false},
    {"", {[](Channels &c) { w(c, false); }, [](Channels &c) { w(c, true), c.aw = address(0, 2); },
          [](Channels &c) { c.ar = address(0, 8); }, [](Channels &c) { c.r.valid = true; }}},
};

static int scripted() {
    int wrong = 0;
    for (const Case &one : cases) {
        Verdict verdict;
        Master master(verdict, 0, 16, false, one.stores);
        for (const Cycle &cycle : one.cycles) {
            Channels c{};
            c.r.ready = c.b.ready = true;
            if (cycle) cycle(c);
            master.look(c, one.phase);
        }
        bool seen = *one.expected ? verdict.what.find(one.expected) != std::string::npos : verdict.what.empty();
        if (!seen) printf("rule \"%s\": found \"%s\"\n", one.expected, verdict.what.c_str());
        wrong += !seen;
    }
    return wrong;
}

// A master without thoughts: offers bursts and their data in any order, takes what comes, and remembers.
struct Careless {
    Random random;
    std::deque<Channels::Address> ar, aw;
    std::deque<std::pair<uint32_t, bool>> w;  // the first word, last
    std::deque<uint32_t> expected;
    int64_t answers = 0;
    uint32_t held[8];
};

// The most general memory of a kind, all of whose answers are looked at; false if it does not end or answers wrongly.
static bool behaves(const MemoryBehaviour &behaviour, uint64_t seed) {
    constexpr int LANES = 3, BURSTS = 40, SIZE = 1 << 16;
    static uint8_t bytes[SIZE], owner[SIZE];
    std::fill(owner, owner + SIZE, TENSOR);
    Verdict verdict;
    Memory memory(verdict, {bytes, owner, 0, SIZE}, LANES);
    memory.begin(behaviour, seed);
    Random random{seed};
    for (uint8_t &byte : bytes) byte = random.next();
    std::vector<Careless> lanes(LANES);
    for (int k = 0; k < LANES; k++) {
        lanes[k].random = {random.next()};
        for (int n = 0; n < BURSTS; n++) {  // reads of one half; writes, each byte once, of the other one
            uint64_t at = random.below(SIZE / 512) * 256, to = SIZE / 2 + (n * LANES + k) * 256;
            int beats = 1 + random.below(8);
            lanes[k].ar.push_back(address(at, beats, false));
            lanes[k].aw.push_back(address(to, beats, false));
            for (int beat = 0; beat < beats; beat++) {
                uint32_t word;
                memcpy(&word, bytes + at + beat * BEAT, 4);
                lanes[k].expected.push_back(word);
                lanes[k].w.push_back({random.next(), beat == beats - 1});
            }
        }
    }
    std::vector<Channels> channels(LANES);
    std::deque<int> asked;           // lanes, a beat each, in the order of their addresses
    std::vector<Answer> before(LANES);
    std::vector<bool> waits(LANES);  // for the answer of the cycle before to be taken
    for (int64_t cycle = 0; cycle < 200000; cycle++) {
        bool left = false;
        for (int k = 0; k < LANES; k++) {
            Careless &lane = lanes[k];
            Channels &c = channels[k];
            auto offer = [&](auto &channel, auto &queue) { channel = {}; if (!queue.empty()) channel = queue.front(); };
            offer(c.ar, lane.ar), offer(c.aw, lane.aw);
            for (uint32_t &word : lane.held) word = lane.w.empty() ? 0 : lane.w.front().first;
            c.w = {lane.held, ~0u, !lane.w.empty() && lane.w.front().second, !lane.w.empty(), false};
            left |= !lane.expected.empty() || lane.answers < BURSTS;
        }
        if (!left) return verdict.what.empty();
        memory.drive(cycle, channels);
        for (int k = 0; k < LANES; k++) {
            Careless &lane = lanes[k];
            Channels &c = channels[k];
            const Answer &a = memory.answers[k];
            c.ar.ready = a.arready, c.aw.ready = a.awready, c.w.ready = a.wready;
            c.r = {a.rvalid, true}, c.b = {a.bvalid, lane.random.chance(700)};
            if (waits[k] && (!a.bvalid || a.bresp != before[k].bresp)) return false;
            waits[k] = a.bvalid && !c.b.ready;
            before[k] = a;
            if (a.rvalid) {
                if (lane.expected.empty() || lane.expected.front() != a.rdata[0] || a.rresp) return false;
                if (behaviour.kind == SHARED && behaviour.ordered && asked.front() != k) return false;
                lane.expected.pop_front();
                if (behaviour.kind == SHARED && behaviour.ordered) asked.pop_front();
            }
            lane.answers += a.bvalid && c.b.ready;
        }
        memory.sample(channels, COMPRESSING);
        for (int k = 0; k < LANES; k++) {
            Careless &lane = lanes[k];
            if (channels[k].ar.valid && channels[k].ar.ready) {
                asked.insert(asked.end(), lane.ar.front().length + 1, k);
                lane.ar.pop_front();
            }
            if (channels[k].aw.valid && channels[k].aw.ready) lane.aw.pop_front();
            if (channels[k].w.valid && channels[k].w.ready) lane.w.pop_front();
        }
    }
    return false;
}

static int memories() {
    int wrong = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        Random random{seed};
        auto flag = [&] { return int64_t(random.below(2)); };
        MemoryBehaviour m{int64_t(random.below(3)), 12, flag(), flag(), flag(), flag(), int64_t(random.below(3)), flag(),
                          1 + int64_t(random.below(9)), 1 + int64_t(random.below(9)), 0, 0, int64_t(random.below(9)),
                          int64_t(random.below(9)), 0, 0, int64_t(random.below(ANY + 1))};
        if (m.kind == INDEPENDENT) m.early = 8 * random.below(3), m.needs = random.below(m.early ? 3 : 2);
        if (behaves(m, seed)) continue;
        printf("memory of kind %lld, seed %llu: does not end, or answers wrongly\n", (long long)m.kind,
               (unsigned long long)seed);
        wrong++;
    }
    return wrong;
}

// Whether lane 1 gets what it asked for behind lane 0, which owes data, or does not take any.
static bool passes(Kind kind, bool writing) {
    static uint8_t bytes[4096], owner[4096];
    std::fill(owner, owner + sizeof owner, TENSOR);
    Verdict verdict;
    Memory memory(verdict, {bytes, owner, 0, sizeof bytes}, 2);
    MemoryBehaviour behaviour{};
    behaviour.kind = kind, behaviour.region = 12, behaviour.ordered = 1, behaviour.reads = behaviour.writes = 9;
    memory.begin(behaviour, 1);
    std::vector<Channels> c(2);
    bool passed = false;
    for (int64_t cycle = 0; cycle < 100; cycle++) {
        for (int k = 0; k < 2; k++) {
            (writing ? c[k].aw : c[k].ar) = address(256 * k, 1);
            (writing ? c[k].aw : c[k].ar).valid = cycle == 4 * k;
            c[k].w = {words, ~0u, true, writing && k == 1 && cycle > 4, false};
        }
        memory.drive(cycle, c);
        for (int k = 0; k < 2; k++) {
            const Answer &a = memory.answers[k];
            c[k].ar.ready = a.arready, c[k].aw.ready = a.awready, c[k].w.ready = a.wready;
            c[k].r = {a.rvalid, k == 1}, c[k].b = {a.bvalid, true};
        }
        passed |= writing ? memory.answers[1].bvalid : memory.answers[1].rvalid;
        memory.sample(c, COMPRESSING);
    }
    return passed;
}

static int blocks() {
    int wrong = 0;
    for (Kind kind : {INDEPENDENT, SHARED, CROSSBAR})
        for (bool writing : {false, true}) {
            if (passes(kind, writing) == (kind == INDEPENDENT)) continue;
            printf("memory of kind %d: lane 1 %s behind lane 0\n", kind, kind == INDEPENDENT ? "waits" : "passes");
            wrong++;
        }
    return wrong;
}

// A beat of m_axis after the other: bytes, last, ready, and a byte behind the end.
struct Beat { int count; bool last, ready; uint8_t behind = 0; };

static int streams() {
    struct { const char *expected; std::vector<Beat> beats; Phase phase = COMPRESSING; bool null = false; } all[] = {
        {"changed", {{128, false, false}, {100, true, true}}},
        {"bytes behind", {{100, true, true, 1}}},
        {"is not the last", {{100, false, true}}},
        {"without bytes", {{0, true, true}}},
        {"should not", {{128, true, true}}, DECOMPRESSING},
        {"", {{128, false, false}, {128, false, true}, {0, true, true}}, COMPRESSING, true},
    };
    int wrong = 0;
    for (auto &one : all) {
        Verdict verdict;
        Sink sink(verdict);
        uint32_t data[PACKET / 4], keep[PACKET / 32];
        uint8_t last, valid = 1, ready;
        for (const Beat &beat : one.beats) {
            auto *bytes = (uint8_t *)data;
            for (int k = 0; k < PACKET; k++) bytes[k] = k < beat.count ? k : beat.behind;
            std::fill(keep, keep + PACKET / 32, 0);
            for (int k = 0; k < beat.count; k++) keep[k / 32] |= 1u << k % 32;
            last = beat.last, ready = beat.ready;
            Stream<uint32_t[PACKET / 4], uint32_t[PACKET / 32]> s{data, keep, last, valid, ready};
            sink.sample(s, one.phase, one.null);
        }
        bool seen = *one.expected ? verdict.what.find(one.expected) != std::string::npos : verdict.what.empty();
        if (!seen) printf("m_axis \"%s\": found \"%s\"\n", one.expected, verdict.what.c_str());
        wrong += !seen;
    }
    return wrong;
}

int main() {
    int wrong = scripted() + memories() + blocks() + streams();
    printf("%d\n", wrong);
    return wrong != 0;
}
