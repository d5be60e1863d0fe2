// Clock, and what a host does: registers over AXI4-Lite, memory over the controller's third port, the controller's own
// registers over Wishbone. One transfer at a time; the accelerator runs meanwhile.
#include <cstdint>
#include <cstring>
#include <memory>
#include "Vtop.h"
#include "verilated.h"

namespace {

constexpr long PATIENCE = 100'000;  // cycles for one transfer
constexpr int BEAT = 32, BURST = 16;

struct World {
    Vtop top;
    long cycle = 0;

    void rise() {
        top.clk = 1, top.eval();
        top.clk = 0, top.eval();
        cycle++;
    }
    // Until `ready` is there in a cycle, of which it is the last one here.
    template <typename Ready>
    bool until(const Ready &ready) {
        for (long end = cycle + PATIENCE; cycle < end; rise()) {
            top.eval();
            if (ready) {
                return true;
            }
        }
        return false;
    }
    template <typename Valid, typename Ready>
    bool transfer(Valid &valid, const Ready &ready) {
        valid = 1;
        bool done = until(ready);
        rise();
        valid = 0;
        top.eval();
        return done;
    }
};

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT World *dram_create() {
    auto *world = new World;
    Vtop &top = world->top;
    top.clk = 0, top.rst = 1, top.eval();
    for (int k = 0; k < 100; k++) world->rise();
    top.rst = 0;
    for (int k = 0; k < 10; k++) world->rise();
    return world;
}

EXPORT void dram_destroy(World *world) { delete world; }

EXPORT long dram_cycle(World *world) { return world->cycle; }

// A write to the controller's registers.
EXPORT int dram_control(World *world, uint32_t address, uint32_t value) {
    Vtop &top = world->top;
    top.control_adr = address / 4, top.control_dat_w = value, top.control_sel = 15, top.control_we = 1, top.control_cyc = 1;
    bool done = world->transfer(top.control_stb, top.control_ack);
    top.control_cyc = 0;
    return !done;
}

// An access to the accelerator's registers.
EXPORT int dram_register(World *world, int write, uint32_t address, uint32_t *value) {
    Vtop &top = world->top;
    if (write) {
        top.s_axil_awaddr = address, top.s_axil_wdata = *value, top.s_axil_wstrb = 15, top.s_axil_bready = 1;
        top.s_axil_wvalid = 1;  // address and data are accepted together
        bool done = world->transfer(top.s_axil_awvalid, top.s_axil_awready);
        top.s_axil_wvalid = 0;
        done = done && world->until(top.s_axil_bvalid);
        int response = top.s_axil_bresp;
        world->rise();
        return done ? response : 4;
    }
    top.s_axil_araddr = address, top.s_axil_rready = 1;
    bool done = world->transfer(top.s_axil_arvalid, top.s_axil_arready) && world->until(top.s_axil_rvalid);
    *value = top.s_axil_rdata;
    int response = top.s_axil_rresp;
    world->rise();
    return done ? response : 4;
}

// `beats` of 32 bytes to memory or from it.
EXPORT int dram_memory(World *world, int write, uint32_t address, int64_t beats, uint8_t *data) {
    Vtop &top = world->top;
    for (int64_t at = 0; at < beats; at += BURST) {
        int length = beats - at < BURST ? beats - at : BURST;
        if (write) {
            top.host_awaddr = address + at * BEAT, top.host_awlen = length - 1, top.host_awsize = 5, top.host_awburst = 1;
            top.host_bready = 1, top.host_wstrb = 0xffffffff;
            if (!world->transfer(top.host_awvalid, top.host_awready)) return 1;
            for (int k = 0; k < length; k++) {
                std::memcpy(&top.host_wdata[0], data + (at + k) * BEAT, BEAT);
                top.host_wlast = k == length - 1;
                if (!world->transfer(top.host_wvalid, top.host_wready)) return 1;
            }
            if (!world->until(top.host_bvalid)) return 1;
            world->rise();
        } else {
            top.host_araddr = address + at * BEAT, top.host_arlen = length - 1, top.host_arsize = 5, top.host_arburst = 1;
            top.host_rready = 1;
            if (!world->transfer(top.host_arvalid, top.host_arready)) return 1;
            for (int k = 0; k < length; k++) {
                if (!world->until(top.host_rvalid)) return 1;
                std::memcpy(data + (at + k) * BEAT, &top.host_rdata[0], BEAT);
                world->rise();
            }
            top.host_rready = 0;
        }
    }
    return 0;
}

// Until the interrupt, or for as many cycles.
EXPORT int dram_wait(World *world, long cycles) {
    for (long end = world->cycle + cycles; world->cycle < end; world->rise()) {
        if (world->top.irq) return 0;
    }
    return 1;
}
