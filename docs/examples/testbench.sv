// What stands around an accelerator: a host, a memory and a DMA engine, in a simulation of 146 lines. A tensor of 40
// rows of 8 values is compressed in mode sfpr (code 1) into a frame, and decompressed from it to another place.

module testbench;
  localparam ROWS = 40, TENSOR = 'h0000, BACK = 'h1000, SCALES = 'h2000;  // addresses in memory
  reg clk = 0, rst = 1;
  always #1 clk = ~clk;

  // The memory has words of 32 bytes, and serves a burst of reads and one of writes at a time.
  reg [255:0] memory [0:511];
  reg reading = 0, writing = 0, written = 0;
  reg [39:0] read_word, write_word;
  reg [7:0] beats;
  wire arvalid, rready, awvalid, wvalid, wlast, bready;
  wire [39:0] araddr, awaddr;
  wire [7:0] arlen, awlen;
  wire [255:0] wdata;
  wire [31:0] wstrb;
  integer lane;
  always @(posedge clk) begin
    if (arvalid && !reading) begin
      reading <= 1; read_word <= araddr >> 5; beats <= arlen;
    end else if (reading && rready) begin
      reading <= beats != 0; read_word <= read_word + 1; beats <= beats - 1;
    end
    if (awvalid && !writing) begin writing <= 1; write_word <= awaddr >> 5; end
    if (writing && wvalid) begin
      for (lane = 0; lane < 32; lane = lane + 1)
        if (wstrb[lane]) memory[write_word[8:0]][8 * lane +: 8] <= wdata[8 * lane +: 8];
      write_word <= write_word + 1; writing <= !wlast;
    end
    written <= writing && wvalid && wlast || written && !bready;
  end

  // The DMA engine keeps a frame, and sends it back.
  reg [1023:0] frame [0:15];
  reg [127:0] keep [0:15];
  reg [3:0] received = 0, sent = 0;
  reg sending = 0;
  wire frame_valid, frame_ready;
  wire [1023:0] frame_data;
  wire [127:0] frame_keep;
  always @(posedge clk) begin
    if (frame_valid) begin frame[received] <= frame_data; keep[received] <= frame_keep; received <= received + 1; end
    if (sending && frame_ready) begin sent <= sent + 1; sending <= sent + 1 != received; end
  end

  // The host: one access of AXI4-Lite after the other.
  reg s_awvalid = 0, s_wvalid = 0, s_bready = 0, s_arvalid = 0, s_rready = 0;
  reg [8:0] s_address;
  reg [31:0] s_wdata;
  wire s_awready, s_wready, s_bvalid, s_arready, s_rvalid, interrupt;
  wire [1:0] s_bresp;
  wire [31:0] s_rdata;

  task write(input [8:0] address, input [31:0] value);
    begin
      s_address <= address; s_wdata <= value; s_awvalid <= 1; s_wvalid <= 1; s_bready <= 1;
      @(posedge clk);
      while (!s_bvalid) begin
        @(posedge clk);
        if (s_awready) s_awvalid <= 0;
        if (s_wready) s_wvalid <= 0;
      end
      s_bready <= 0;
      if (s_bresp != 0) $fatal(1, "register %h was not written", address);
      @(posedge clk);
    end
  endtask

  task read(input [8:0] address, output [31:0] value);
    begin
      s_address <= address; s_arvalid <= 1; s_rready <= 1;
      @(posedge clk);
      while (!s_rvalid) begin
        @(posedge clk);
        if (s_arready) s_arvalid <= 0;
      end
      value = s_rdata; s_rready <= 0;
      @(posedge clk);
    end
  endtask

  task run(input [31:0] base, input decompress);  // a tensor, to its end
    reg [31:0] status, cycles;
    begin
      write('h20, {23'b0, decompress, 8'd1});  // MODE
      write('h24, ROWS);
      write('h28, 8);     // WIDTH
      write('h2c, 32);    // STRIDE
      write('h30, ROWS);  // HEIGHT: all rows have the same scale
      write('h34, 1);     // CHANNELS
      write('h38, base);
      write('h40, SCALES);
      write('h14, 3);     // INTERRUPT_STATUS: clears both bits
      write('h18, 1);     // INTERRUPT_ENABLE: done
      write('h0c, 1);     // CONTROL: start
      while (!interrupt) @(posedge clk);
      read('h10, status);
      read('h80, cycles);
      $display("%0s: error %0d, %0d cycles", decompress ? "decompressed" : "compressed", status[7:4], cycles);
    end
  endtask

  integer k;
  reg [31:0] size;
  initial begin
    for (k = 0; k < 8 * ROWS; k = k + 1)  // 1.0, 2.0, 4.0 ... 64.0, again and again
      memory[k / 8][32 * (k % 8) +: 32] = (127 + k % 7) << 23;
    memory[SCALES / 32] = 32'h3f800000;  // 1.0, to compress and to decompress
    repeat (2) @(posedge clk);
    rst <= 0;
    run(TENSOR, 0);
    read('h90, size);  // BYTES_OUT
    $display("%0d bytes became %0d", 32 * ROWS, size);
    for (k = 0; k < size; k = k + 1)
      if (frame[k / 128][8 * (k % 128) +: 8] != 1 << k % 7) $fatal(1, "byte %0d is wrong", k);
    sending <= 1;
    run(BACK, 1);
    for (k = 0; k < ROWS; k = k + 1)
      if (memory[BACK / 32 + k] != memory[k]) $fatal(1, "row %0d is wrong", k);
    $display("the tensor came back");
    $finish;
  end

  offload accelerator (
    .clk(clk), .rst(rst), .interrupt(interrupt),
    .s_axil_awvalid(s_awvalid), .s_axil_awready(s_awready), .s_axil_awaddr(s_address), .s_axil_awprot(3'b0),
    .s_axil_wvalid(s_wvalid), .s_axil_wready(s_wready), .s_axil_wdata(s_wdata), .s_axil_wstrb(4'hf),
    .s_axil_bvalid(s_bvalid), .s_axil_bready(s_bready), .s_axil_bresp(s_bresp),
    .s_axil_arvalid(s_arvalid), .s_axil_arready(s_arready), .s_axil_araddr(s_address), .s_axil_arprot(3'b0),
    .s_axil_rvalid(s_rvalid), .s_axil_rready(s_rready), .s_axil_rdata(s_rdata), .s_axil_rresp(),
    .m_axi_0_arvalid(arvalid), .m_axi_0_arready(!reading), .m_axi_0_araddr(araddr), .m_axi_0_arlen(arlen),
    .m_axi_0_arid(), .m_axi_0_arsize(), .m_axi_0_arburst(), .m_axi_0_arcache(), .m_axi_0_arprot(),
    .m_axi_0_rvalid(reading), .m_axi_0_rready(rready), .m_axi_0_rdata(memory[read_word[8:0]]),
    .m_axi_0_rresp(2'b0), .m_axi_0_rlast(beats == 0), .m_axi_0_rid(1'b0),
    .m_axi_0_awvalid(awvalid), .m_axi_0_awready(!writing), .m_axi_0_awaddr(awaddr), .m_axi_0_awlen(awlen),
    .m_axi_0_awid(), .m_axi_0_awsize(), .m_axi_0_awburst(), .m_axi_0_awcache(), .m_axi_0_awprot(),
    .m_axi_0_wvalid(wvalid), .m_axi_0_wready(writing), .m_axi_0_wdata(wdata), .m_axi_0_wstrb(wstrb),
    .m_axi_0_wlast(wlast),
    .m_axi_0_bvalid(written), .m_axi_0_bready(bready), .m_axi_0_bresp(2'b0), .m_axi_0_bid(1'b0),
    .m_axis_tvalid(frame_valid), .m_axis_tready(1'b1), .m_axis_tdata(frame_data), .m_axis_tkeep(frame_keep),
    .m_axis_tlast(),
    .s_axis_tvalid(sending), .s_axis_tready(frame_ready), .s_axis_tdata(frame[sent]), .s_axis_tkeep(keep[sent]),
    .s_axis_tlast(sent + 4'd1 == received));
endmodule
