# What scripts ask of OpenSTA, with slacks in seconds.

proc iterate {iterator} {
  set found {}
  while {[$iterator has_next]} { lappend found [$iterator next] }
  $iterator finish
  return $found
}

proc kind {cell} { return [get_property $cell ref_name] }

proc slack {vertex} { return [expr {min([lindex [$vertex slacks rise] 1], [lindex [$vertex slacks fall] 1])}] }

# The transitions of a gate's input that can cause one of its output.
proc causes {edge transition} {
  switch [$edge sense] {
    positive_unate { return $transition }
    negative_unate { return [expr {$transition eq "rise" ? "fall" : "rise"}] }
  }
  return {rise fall}
}

proc outputs {cell} {
  set found {}
  foreach pin [iterate [$cell pin_iterator]] {
    if {[sta::Pin_is_driver $pin]} { lappend found $pin }
  }
  return $found
}

# Whether an output drives more than one of a cell of this kind may, by "limit", with the library's usual wires.
set corner [sta::cmd_corner]
proc overloaded {output kind} {
  set name $kind/[get_name [$output port]]
  return [expr {[info exists ::limit($name)] && [$output capacitance rise $::corner max] * 1e15 > $::limit($name)}]
}
