"""Pure drawing: a snapshot and a width in, styled text out."""
