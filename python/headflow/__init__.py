"""headflow: a solvable model of multi-head attention."""
