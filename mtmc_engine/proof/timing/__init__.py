"""How fast a candidate is: measured in pairs, replayed from a recording, or estimated."""
