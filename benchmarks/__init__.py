"""Side-by-side measurements. Each script alternates both sides in one run and prints ratios."""
