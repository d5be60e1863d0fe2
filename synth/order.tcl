# Gives equal inputs of late gates the order that the loaded design's own timing asks for: the latest signals get the
# fastest pins. Where the net of a pin came from is in "home", and in the end in the file MOVES: "CELL FROM TO".

# Cells of parts, which have other names, are nobody's to change.
proc own {cell} { return [string match c* [get_full_name $cell]] }

# Outputs of all cells that are late.
proc late {} {
  set front {}
  foreach end [find_timing_paths -path_delay max -group_count 100000 -slack_max 0] {
    lappend front [sta::PathEnd_vertex $end]
  }
  set found {}
  while {[llength $front]} {
    set behind {}
    foreach vertex $front {
      if {[info exists seen($vertex)]} { continue }
      set seen($vertex) 1
      if {[slack $vertex] >= 0} { continue }
      set pin [$vertex pin]
      if {[sta::Pin_is_driver $pin] && ![sta::Pin_is_top_level_port $pin]} { lappend found $vertex }
      foreach edge [iterate [$vertex in_edge_iterator]] { lappend behind [$edge from] }
    }
    set front $behind
  }
  return $found
}

# What is to change at a gate so that the signals that leave it the least time have the fastest pins: {pin source ...},
# the pin shall have the source's net. Of equal inputs, the one with the lowest number is the fastest; groups of inputs,
# which have a letter each, are as fast as they come in the alphabet but for those below.
array set fastest {AOI211 {B A C} AOI221 {C B A} OAI221 {C B A}}
proc disorder {out} {
  set cell [sta::Pin_instance [$out pin]]
  if {![own $cell] || ![regexp {^((X?N?OR|N?AND|AOI|OAI)\d+)_} [kind $cell] - kind]} { return {} }
  foreach edge [iterate [$out in_edge_iterator]] {
    set left 1
    foreach transition {rise fall} {
      set due [lindex [$out requireds_clk $transition $::clock rise] 1]
      foreach cause [causes $edge $transition] {
        set left [expr {min($left, $due - [lindex [[$edge from] arrivals_clk $cause $::clock rise] 1])}]
      }
    }
    set name [get_name [[$edge from_pin] port]]
    dict set inputs [string index $name 0] $name [list $left $name [$edge from_pin]]
  }
  foreach letter [expr {[info exists ::fastest($kind)] ? $::fastest($kind) : {A B C}}] {
    if {![dict exists $inputs $letter]} { continue }
    set group [dict values [dict get $inputs $letter]]
    dict lappend pins [llength $group] [lsort -index 1 $group]
    dict lappend signals [llength $group] [lsort -real -index 0 [lsort -index 1 $group]]
  }
  set changes {}
  foreach size [dict keys $pins] {
    foreach places [dict get $pins $size] group [lsort -real -index {0 0} [dict get $signals $size]] {
      foreach place $places signal $group {
        if {$place ne $signal} { lappend changes [lindex $place 2] [lindex $signal 2] }
      }
    }
  }
  return $changes
}

proc rearrange {} {
  set changes {}
  foreach out [late] { lappend changes {*}[disorder $out] }
  set moves {}
  foreach {pin source} $changes {
    set from [expr {[info exists ::home($source)] ? $::home($source) : [get_name [$source port]]}]
    lappend moves $pin [$source net] $from
  }
  foreach {pin source} $changes { sta::disconnect_pin_cmd $pin }
  foreach {pin net from} $moves {
    sta::connect_pin_cmd [$pin instance] [$pin port] $net
    set ::home($pin) $from
  }
}

set clock [get_clocks clk]
rearrange
rearrange
set file [open MOVES w]
foreach pin [array names home] {
  set to [get_name [$pin port]]
  if {$home($pin) ne $to} { puts $file "[get_full_name [$pin instance]] $home($pin) $to" }
}
close $file
