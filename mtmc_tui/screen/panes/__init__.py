"""The five panes and the lines around them."""
