"""The full-screen display: events fold into one snapshot, panes draw it."""
