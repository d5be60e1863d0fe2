// A DMA engine at the accelerator's AXI4-Streams, and what they have to keep to.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>
#include "random.h"
#include "rules.h"

// An AXI4-Stream's signals.
template<class Data, class Keep> struct Stream { Data &data; Keep &keep; uint8_t &last, &valid, &ready; };

// Bytes that may pass: `rate` more in each cycle, and what was not used for at most two packets.
struct Bucket {
    double rate = PACKET, level = 0;
    void fill() { level = std::min(level + rate, 2.0 * PACKET); }
    bool full() const { return level >= PACKET; }
};

// Takes frames from m_axis.
class Sink {
    using Beat = std::vector<uint32_t>;
    Verdict &verdict;
    Stays<Beat> stays;
    Pauses pauses;
    std::vector<uint8_t> frame;

public:
    std::deque<std::vector<uint8_t>> done;
    bool begun = false;  // a frame is under way
    Bucket bucket;

    explicit Sink(Verdict &verdict) : verdict(verdict) {}

    void begin(int64_t pattern, Random &seeds) { pauses.begin(pattern, seeds); }
    void reset() {
        stays.reset();
        frame.clear(), done.clear();
        begun = false;
    }
    template<class S> void drive(S &s) {
        bucket.fill();
        s.ready = !pauses.rests(s.valid) && bucket.full();
    }

    // `null`: a frame that was given up ends without bytes.
    template<class S> bool sample(const S &s, Phase phase, bool null) {
        if (s.valid && (phase == IDLE || phase == DECOMPRESSING)) verdict.wrong("m_axis: moves while it should not");
        Beat beat;
        if (s.valid) {
            beat.assign(&s.data[0], &s.data[0] + PACKET / 4);
            beat.insert(beat.end(), &s.keep[0], &s.keep[0] + PACKET / 32);
            beat.push_back(s.last);
        }
        stays.look(verdict, "m_axis", 0, s.valid, s.ready, beat);
        if (!s.valid || !s.ready) return false;
        int count = 0;
        while (count < PACKET && s.keep[count / 32] >> count % 32 & 1) count++;
        auto *bytes = (const uint8_t *)&s.data[0];
        for (int k = count; k < PACKET; k++)
            if (s.keep[k / 32] >> k % 32 & 1 || bytes[k]) verdict.wrong("m_axis: bytes behind the end of a beat");
        if (count < PACKET && !s.last) verdict.wrong("m_axis: a beat of %d bytes is not the last one", count);
        if (!count && !null) verdict.wrong("m_axis: a beat without bytes");
        bucket.level -= count;
        frame.insert(frame.end(), bytes, bytes + count);
        begun = !s.last;
        if (s.last) {
            done.push_back(std::move(frame));
            frame.clear();
        }
        return true;
    }
};

// Sends frames to s_axis.
class Source {
    struct Beat { uint8_t bytes[PACKET]; uint32_t keep[PACKET / 32]; bool last; };
    Verdict &verdict;
    std::deque<Beat> beats;
    Pauses pauses;
    Random random{0};
    bool offered = false, stale = false;

public:
    bool begun = false;     // a frame is under way
    bool dropping = false;  // what is left of it is for nobody
    Bucket bucket;

    explicit Source(Verdict &verdict) : verdict(verdict) {}

    void begin(int64_t pattern, Random &seeds) {
        pauses.begin(pattern, seeds);
        random.state = seeds.next();
    }
    void reset() {
        beats.clear();
        offered = stale = begun = dropping = false;
    }
    bool empty() const { return beats.empty(); }

    // A beat: PACKET bytes, and for each of them whether it counts.
    void push(const uint8_t *bytes, const uint8_t *keep, bool last) {
        Beat beat{{}, {}, last};
        memcpy(beat.bytes, bytes, PACKET);
        for (int k = 0; k < PACKET; k++) beat.keep[k / 32] |= uint32_t(keep[k] & 1) << k % 32;
        beats.push_back(beat);
    }
    template<class S> void drive(S &s) {
        bool rests = pauses.rests();
        bucket.fill();
        if (offered) return;
        s.valid = 0;
        if (stale) {  // nobody may look at what is not valid
            for (int k = 0; k < PACKET / 4; k++) s.data[k] = random.next();
            for (int k = 0; k < PACKET / 32; k++) s.keep[k] = random.next();
            s.last = random.chance(500);
            stale = false;
        }
        if (beats.empty() || rests || !bucket.full()) return;
        const Beat &beat = beats.front();
        memcpy(&s.data[0], beat.bytes, PACKET);
        memcpy(&s.keep[0], beat.keep, sizeof beat.keep);
        s.last = beat.last;
        s.valid = offered = true;
    }
    template<class S> bool sample(const S &s, Phase phase) {
        if (!s.valid || !s.ready) return false;
        if ((phase == IDLE || phase == COMPRESSING || phase == SCANNING) && !dropping)
            verdict.wrong("s_axis: a beat is taken that is for nobody");
        begun = !s.last;
        dropping &= begun;
        offered = false, stale = true;
        for (uint32_t word : beats.front().keep) bucket.level -= __builtin_popcount(word);
        beats.pop_front();
        return true;
    }
};
