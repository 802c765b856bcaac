"""Side-by-side measurements against peers; they print ratios."""
