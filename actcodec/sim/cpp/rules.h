// What the accelerator has to keep to at its ports, whatever is behind them.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdint>
#include <deque>
#include <string>
#include <tuple>

constexpr int BEAT = 32, PACKET = 128;  // bytes

// EITHER: whoever looks does not know. SCANNING: the tensor is scanned, and then perhaps compressed. RUNNING: tensors of
// a ring, each of which may be anything.
enum Phase { IDLE, COMPRESSING, DECOMPRESSING, EITHER, SCANNING, RUNNING };

// The first thing that went wrong.
struct Verdict {
    int64_t cycle = 0;
    std::string what;

    __attribute__((format(printf, 2, 3))) void wrong(const char *format, ...) {
        if (!what.empty()) return;
        char text[256];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        what = "cycle " + std::to_string(cycle) + ": " + text;
    }
};

// Whatever is valid stays as it is until it is taken.
template<class Payload> class Stays {
    bool stands = false;
    Payload before;

public:
    // `valid` is there for the first time.
    bool look(Verdict &verdict, const char *name, int lane, bool valid, bool ready, const Payload &payload) {
        bool fresh = valid && !stands;
        if (stands && !valid) verdict.wrong("%s of %d: valid withdrawn", name, lane);
        else if (stands && payload != before) verdict.wrong("%s of %d: changed while it waits", name, lane);
        stands = valid && !ready;
        if (stands) before = payload;
        return fresh;
    }
    void reset() { stands = false; }
};

// An AXI4 master's signals in a cycle in which all has settled.
struct Channels {
    struct Address { uint64_t address; int length, size, burst, id, cache, prot; bool valid, ready; } ar, aw;
    struct { const uint32_t *data; uint32_t strobe; bool last, valid, ready; } w;
    struct { bool valid, ready; } r, b;
};

// Rules of an AXI4 master of whole beats and one ID.
class Master {
    using Address = std::tuple<uint64_t, int, int, int, int, int, int>;
    using Data = std::tuple<uint64_t, uint64_t, uint64_t, uint64_t, uint32_t, bool>;
    static constexpr int LIMIT = 8;    // beats of a burst
    static constexpr int PROMPT = 4;   // cycles from a burst's address to its first beat

    Verdict &verdict;
    int lane;
    int64_t outstanding;
    bool payload;  // moves payloads, and reads and writes the other way round
    bool stores;  // has data before it offers their address, and room for what it reads
    Stays<Address> ar, aw;
    Stays<Data> w;
    std::deque<int> addresses, data;  // beats of bursts: offered, but their data not complete; the other way round
    int beats = 0;                    // of the burst at w
    int waits = 0;                    // cycles without data for an address that was offered

    void burst(const char *name, const Channels::Address &a) {
        if (a.size != 5 || a.burst != 1 || a.id || a.cache != 3 || a.prot != 2)
            verdict.wrong("%s of %d: size %d, burst %d, id %d, cache %d, prot %d", name, lane, a.size, a.burst, a.id,
                          a.cache, a.prot);
        if (a.address % BEAT || a.length >= LIMIT)
            verdict.wrong("%s of %d: %d beats at %#llx", name, lane, a.length + 1, (unsigned long long)a.address);
        if (a.address / (LIMIT * BEAT) != (a.address + a.length * BEAT) / (LIMIT * BEAT))
            verdict.wrong("%s of %d: %d beats at %#llx cross 256 bytes", name, lane, a.length + 1,
                          (unsigned long long)a.address);
    }
    static Address fields(const Channels::Address &a) {
        return {a.address, a.length, a.size, a.burst, a.id, a.cache, a.prot};
    }
    void match() {
        while (!addresses.empty() && !data.empty()) {
            if (addresses.front() != data.front())
                verdict.wrong("w of %d: %d beats of a burst of %d", lane, data.front(), addresses.front());
            addresses.pop_front();
            data.pop_front();
        }
    }

public:
    int64_t reads = 0, writes = 0;  // beats and bursts that were asked for and have no answer

    Master(Verdict &verdict, int lane, int64_t outstanding, bool payload, bool stores)
        : verdict(verdict), lane(lane), outstanding(outstanding), payload(payload), stores(stores) {}

    bool at_rest() const { return !reads && !writes && addresses.empty() && data.empty() && !beats; }

    void reset() {
        ar.reset(), aw.reset(), w.reset();
        addresses.clear(), data.clear();
        beats = waits = 0;
        reads = writes = 0;
    }

    void look(const Channels &c, Phase phase) {
        if (phase == IDLE && (c.ar.valid || c.aw.valid || c.w.valid)) verdict.wrong("lane %d: moves while idle", lane);
        if (phase == (payload ? DECOMPRESSING : COMPRESSING) && (c.aw.valid || c.w.valid))
            verdict.wrong("lane %d: writes", lane);
        if (payload && (phase == COMPRESSING || phase == SCANNING) && c.ar.valid) verdict.wrong("port %d: reads", lane);

        if (ar.look(verdict, "ar", lane, c.ar.valid, c.ar.ready, fields(c.ar))) burst("ar", c.ar);
        if (c.ar.valid && reads + c.ar.length + 1 > outstanding)
            verdict.wrong("ar of %d: %lld beats under way, %d more", lane, (long long)reads, c.ar.length + 1);
        if (stores && reads && !c.r.ready) verdict.wrong("r of %d: not ready for what it asked for", lane);
        if (c.ar.valid && c.ar.ready) reads += c.ar.length + 1;
        if (c.r.valid && c.r.ready) reads--;

        if (aw.look(verdict, "aw", lane, c.aw.valid, c.aw.ready, fields(c.aw))) {
            burst("aw", c.aw);
            addresses.push_back(c.aw.length + 1);
        }
        if (c.aw.valid && writes + 1 > outstanding)
            verdict.wrong("aw of %d: %lld bursts have no answer, one more", lane, (long long)writes);
        if (c.aw.valid && c.aw.ready) writes++;
        if (c.b.valid && c.b.ready) writes--;

        uint64_t word[4] = {};
        for (int k = 0; k < 8 && c.w.valid; k++) word[k / 2] |= uint64_t(c.w.data[k]) << k % 2 * 32;
        w.look(verdict, "w", lane, c.w.valid, c.w.ready, {word[0], word[1], word[2], word[3], c.w.strobe, c.w.last});
        // Inside of a burst no cycle may pass, between two of them a few.
        bool owes = data.size() < addresses.size();
        waits = owes && !c.w.valid ? waits + 1 : 0;
        if (stores && waits > (beats ? 0 : PROMPT)) verdict.wrong("w of %d: an address waits for data", lane);
        if (c.w.valid && c.w.ready) {
            beats++;
            if (c.w.last || beats > LIMIT) {
                data.push_back(beats);
                beats = 0;
            }
            match();
        }
        if (c.aw.valid) match();
    }
};
