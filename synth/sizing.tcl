# Gives the cells of the loaded design the sizes that its own timing asks for. First order.tcl, and cells become as large
# as what they drive asks for; then, on paths that are late, cells become larger, or smaller if that helps those in front
# of them. In the end all cells that can afford it become smaller. Writes to the file SIZES "cell kind KIND" for those
# whose size it has changed, and "cell pin PIN" for every input whose net is at another pin now.

# A cell's kind with another drive, {} if there is none.
proc resized {kind factor} {
  if {![info exists ::sizes($kind,$factor)]} {
    set found {}
    if {[regexp {^(.*_X)(\d+)$} $kind - base drive]} {
      set found [lindex [get_lib_cells -quiet */$base[expr {int($drive * $factor)}]] 0]
    }
    set ::sizes($kind,$factor) [expr {$found eq {} ? {} : [get_name $found]}]
  }
  return $::sizes($kind,$factor)
}

proc turn {cell kind} {
  if {![info exists ::first($cell)]} { set ::first($cell) [kind $cell] }
  if {![info exists ::known($kind)]} { set ::known($kind) [lindex [get_lib_cells */$kind] 0] }
  sta::replace_cell_cmd $cell $::known($kind)
}

# Whether all that a cell drives, and what drives it, may have the load that it has.
proc legal {cell} {
  foreach pin [iterate [$cell pin_iterator]] {
    set out $pin
    if {![sta::Pin_is_driver $pin]} {
      foreach wire [iterate [[lindex [$pin vertices] 0] in_edge_iterator]] { set out [$wire from_pin] }
      if {$out eq $pin || [sta::Pin_is_top_level_port $out]} { continue }
    }
    if {[overloaded $out [kind [sta::Pin_instance $out]]]} { return 0 }
  }
  return 1
}

# Gives all cells at least the drive that their loads ask for, until none of them makes another one's too large.
proc strengthen {} {
  set changed 1
  while {$changed} {
    set changed 0
    foreach cell [get_cells *] {
      if {![own $cell]} { continue }
      foreach out [outputs $cell] {
        while {[overloaded $out [kind $cell]] && [set to [resized [kind $cell] 2]] ne {}} {
          turn $cell $to
          set changed 1
        }
      }
    }
  }
}

# A path from its end: for each cell on it {cell edge property}, with the edge that the path takes through the cell and
# its property that is the delay.
proc stages {path} {
  set pins [sta::PathRef_pins [sta::PathEnd_path $path]]
  set found {}
  foreach out $pins in [lrange $pins 1 end] {
    if {$in eq {} || [sta::Pin_is_top_level_port $out] || ![sta::Pin_is_driver $out]} { continue }
    set vertex [lindex [$out vertices] 0]
    if {![llength $found]} { set transitions {rise fall} }
    foreach edge [iterate [$vertex in_edge_iterator]] {
      if {[$edge from_pin] ne $in} { continue }
      set transition [lindex $transitions 0]
      if {[llength $transitions] > 1} {
        set transition [expr {[lindex [$vertex slacks rise] 1] < [lindex [$vertex slacks fall] 1] ? "rise" : "fall"}]
      }
      lappend found [list [sta::Pin_instance $out] $edge delay_max_$transition]
      set transitions [causes $edge $transition]
      break
    }
  }
  return $found
}

proc delay {stages} {
  set sum 0
  foreach stage $stages { set sum [expr {$sum + [sta::edge_property [lindex $stage 1] [lindex $stage 2]]}] }
  return $sum
}

# The slowest paths to endpoints not in "hopeless", twenty at most, as finding one takes as long: {end stages ...}.
proc slowest {hopeless} {
  set found {}
  foreach path [find_timing_paths -path_delay max -group_count [expr {[dict size $hopeless] + 20}] -slack_max 0] {
    set end [sta::PathEnd_vertex $path]
    if {![dict exists $hopeless $end]} { lappend found $end [stages $path] }
  }
  return $found
}

# Another size is kept if the path becomes faster there by its neighbours' delays, which is quickly known, and then if the
# sum of all negative slacks becomes less. It may stay as it is if the path gains much, as others are as slow. A slack that
# is far from zero, and that all tries left would not bring there at the pace of the last ones, never gets there: returns
# whether it may.
proc quicken {tries} {
  set hopeless [dict create]
  set improved 0
  lassign [list $tries [worst_slack -max]] since before
  while {[worst_slack -max] < 0 && $tries > 0} {
    if {$since - $tries >= $::PACE} {
      set now [worst_slack -max]
      if {$now < $::FAR && ($now - $before) * $tries < -$now * ($since - $tries)} { return 0 }
      lassign [list $tries $now] since before
    }
    set paths [slowest $hopeless]
    if {![llength $paths] || [dict size $hopeless] > 2000} {
      if {!$improved} { return [expr {[worst_slack -max] > $::FAR}] }
      set improved 0
      set hopeless [dict create]
      continue
    }
    foreach {end stages} $paths {
      dict set hopeless $end 1
      set late [total_negative_slack]
      for {set i 0} {$i < [llength $stages]} {incr i} {
        set cell [lindex $stages $i 0]
        if {![own $cell] || [string match CLKGATE* [kind $cell]]} { continue }
        set near [lrange $stages [expr {max($i - 1, 0)}] [expr {$i + 1}]]
        set slow [delay $near]
        set from [kind $cell]
        foreach factor {2 0.5} {
          set to [resized $from $factor]
          if {$to eq {}} { continue }
          turn $cell $to
          set gain [expr {$slow - [delay $near]}]
          if {$gain > 0} {
            incr ::tried
            incr tries -1
            if {[total_negative_slack] > $late + ($gain > 5e-4 ? -1e-6 : 1e-5) && [legal $cell]} {
              set late [total_negative_slack]
              incr improved
              dict unset hopeless $end
              break
            }
          }
          turn $cell $from
        }
      }
    }
  }
  return 1
}

# The slack of what a cell drives, and the delays of its edges.
proc standing {cell} {
  set spare 1
  set delays {}
  foreach pin [outputs $cell] {
    set vertex [lindex [$pin vertices] 0]
    set spare [expr {min($spare, [slack $vertex])}]
    foreach edge [iterate [$vertex in_edge_iterator]] {
      foreach property {delay_max_rise delay_max_fall} { lappend delays [sta::edge_property $edge $property] }
    }
  }
  return [list $spare $delays]
}

# All cells become smaller at once that have the slack for what that costs them. Then, of those on paths that have become
# late, the ones that lose most become what they were, until no path is. This is repeated while it helps, up to four times.
proc shrink {} {
  set worst [worst_slack -max]
  set limit [expr {$worst < 0 ? $worst * 1e-9 : 0}]
  foreach round {1 2 3 4} {
    array unset was
    set smaller {}
    foreach cell [get_cells *] {
      set to [resized [kind $cell] 0.5]
      if {$to eq {} || ![own $cell]} { continue }
      set able 1
      foreach out [outputs $cell] { set able [expr {$able && ![overloaded $out $to]}] }
      if {$able} { lappend smaller $cell $to {*}[standing $cell] }
    }
    foreach {cell to spare delays} $smaller {
      set was($cell) [kind $cell]
      turn $cell $to
    }
    set back {}
    foreach {cell to spare delays} $smaller {
      set loss($cell) 0
      foreach before $delays after [lindex [standing $cell] 1] {
        set loss($cell) [expr {max($loss($cell), ($after - $before) * 1e-9)}]
      }
      if {$loss($cell) > $spare} { lappend back $cell }
    }
    while 1 {
      foreach cell $back {
        turn $cell $was($cell)
        unset was($cell)
      }
      set back {}
      foreach path [find_timing_paths -path_delay max -group_count 2000 -slack_max [expr {$limit * 1e9}]] {
        set excess [expr {$limit - [sta::PathEnd_slack $path]}]
        set found {}
        set beside {}
        foreach stage [stages $path] {
          lassign $stage cell through
          if {[info exists was($cell)]} { lappend found [list $cell $loss($cell)] }
          foreach edge [iterate [[$through to] in_edge_iterator]] {
            foreach wire [iterate [[$edge from] in_edge_iterator]] {
              set cell [sta::Pin_instance [$wire from_pin]]
              if {[info exists was($cell)]} { lappend beside [list $cell $loss($cell)] }
            }
          }
        }
        # Slow signals at other inputs slow down an output, too.
        if {![llength $found]} { set found $beside }
        foreach candidate [lsort -real -decreasing -index 1 $found] {
          if {$excess <= 0} { break }
          set excess [expr {$excess - [lindex $candidate 1]}]
          if {[lindex $candidate 0] ni $back} { lappend back [lindex $candidate 0] }
        }
      }
      if {![llength $back] && [worst_slack -max] < min(0, $worst)} { set back [array names was] }
      if {![llength $back]} { break }
    }
    if {![array size was]} { break }
  }
}

set clock [get_clocks clk]
set FAR -0.1  ;# ns
set PACE 500  ;# tries
set tried 0
foreach tries {3000 1000} {
  rearrange
  rearrange
  strengthen
  if {![quicken $tries]} { break }
}
puts "$tried sizes tried"
shrink
set file [open SIZES w]
foreach cell [array names first] {
  if {[kind $cell] ne $first($cell)} { puts $file "[get_full_name $cell] kind [kind $cell]" }
}
foreach pin [array names home] { puts $file "[get_full_name [$pin instance]] $home($pin) [get_name [$pin port]]" }
close $file
