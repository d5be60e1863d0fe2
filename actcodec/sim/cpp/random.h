// Random numbers, and when a channel rests.
#pragma once
#include <cstdint>

struct Random {  // splitmix64
    uint64_t state;
    uint64_t next() {
        uint64_t z = state += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }
    uint64_t below(uint64_t limit) { return (next() >> 32) * limit >> 32; }
    bool chance(uint32_t of_thousand) { return below(1000) < of_thousand; }
};

// How often a channel rests. SHY: what is ready only once it has seen valid. ANY: one of the others for each channel.
enum Pattern { NEVER, SELDOM, HALF, MOSTLY, BURSTS, NAPS, SHY, ANY };

class Pauses {
    Pattern pattern = NEVER;
    Random random{0};
    bool resting = false;
    int64_t left = 0;  // cycles until that changes

public:
    void begin(int64_t chosen, Random &seeds) {
        random.state = seeds.next();
        pattern = Pattern(chosen == ANY ? seeds.below(ANY) : chosen);
        resting = false;
        left = 0;
    }
    // Called once a cycle. `seen`: somebody waits for this channel.
    bool rests(bool seen = true) {
        switch (pattern) {
        case SELDOM: return random.chance(100);
        case HALF: return random.chance(500);
        case MOSTLY: return random.chance(900);
        case SHY: return !seen;
        case BURSTS:
        case NAPS:  // long enough for whatever is in front to fill up
            if (!left--) {
                resting = !resting;
                left = random.below(pattern == BURSTS ? 24 : 500);
            }
            return resting;
        default: return false;
        }
    }
};
