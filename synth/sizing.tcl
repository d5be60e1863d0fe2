# Gives the cells of the loaded design the sizes that its own timing asks for, and writes "cell kind" of those whose size
# it has changed to the file SIZES. On paths that are late, cells become larger, or smaller if that helps those in front
# of them; then all cells that can afford it become smaller.

# A cell's kind with another drive, {} if there is none.
proc resized {kind factor} {
  if {[string match CLKGATE* $kind] || ![regexp {^(.*_X)(\d+)$} $kind - base drive]} { return {} }
  return [lindex [get_lib_cells -quiet */$base[expr {int($drive * $factor)}]] 0]
}

proc kind {cell} { return [get_property $cell ref_name] }

proc restore {cell kind} { replace_cell $cell [lindex [get_lib_cells */$kind] 0] }

# The slack of what a cell drives, in seconds.
proc spare {cell} {
  set least 1
  foreach pin [get_pins -of_objects $cell] {
    if {![sta::Pin_is_driver $pin]} { continue }
    foreach vertex [$pin vertices] {
      foreach edge {rise fall} { set least [expr {min($least, [lindex [$vertex slacks $edge] 1])}] }
    }
  }
  return $least
}

# The cells of the slowest path, without those that lie in a module of their own, among the endpoints not in "hopeless";
# and the endpoint, which is {} if there is no such path.
proc slowest {hopeless} {
  foreach path [find_timing_paths -path_delay max -group_count [expr {[dict size $hopeless] + 1}]] {
    if {[get_property $path slack] >= 0} { break }
    set pins [sta::PathRef_pins [sta::PathEnd_path $path]]
    set end [get_full_name [lindex $pins 0]]
    if {[dict exists $hopeless $end]} { continue }
    set cells {}
    foreach pin $pins {
      if {![sta::Pin_is_top_level_port $pin] && [sta::Pin_is_driver $pin]} {
        set cell [sta::Pin_instance $pin]
        if {[string first / [get_full_name $cell]] < 0} { lappend cells $cell }
      }
    }
    return [list $end $cells]
  }
  return {{} {}}
}

proc quicken {tries} {
  set hopeless [dict create]
  set improved 0
  while {[worst_slack -max] < 0 && $tries > 0} {
    lassign [slowest $hopeless] end cells
    if {$end eq {}} {
      if {!$improved} { break }
      set improved 0
      set hopeless [dict create]
      continue
    }
    dict set hopeless $end 1
    set late [total_negative_slack]
    foreach cell $cells {
      foreach factor {2 0.5} {
        set from [kind $cell]
        set to [resized $from $factor]
        if {$to eq {}} { continue }
        incr tries -1
        replace_cell $cell $to
        if {[total_negative_slack] > $late + 1e-5} {
          set late [total_negative_slack]
          incr improved
          dict unset hopeless $end
          break
        }
        restore $cell $from
      }
    }
  }
}

proc shrink {} {
  set worst [expr {min(0, [worst_slack -max])}]
  set late [expr {[total_negative_slack] - 1e-5}]
  set cells [get_cells *]
  while {[llength $cells]} {
    set candidates {}
    foreach cell $cells { if {[resized [kind $cell] 0.5] ne {}} { lappend candidates [list $cell [spare $cell]] } }
    set cells {}
    foreach candidate [lsort -real -decreasing -index 1 $candidates] {
      set cell [lindex $candidate 0]
      set from [kind $cell]
      replace_cell $cell [resized $from 0.5]
      if {[worst_slack -max] >= $worst && ($worst == 0 || [total_negative_slack] >= $late)} {
        lappend cells $cell
      } else {
        restore $cell $from
      }
    }
  }
}

foreach cell [get_cells *] { set before($cell) [kind $cell] }
# What is much too slow is too slow for this.
if {[worst_slack -max] > -0.25} {
  quicken 6000
  shrink
}
set file [open SIZES w]
foreach cell [get_cells *] {
  if {[kind $cell] ne $before($cell)} { puts $file "[get_full_name $cell] [kind $cell]" }
}
close $file
