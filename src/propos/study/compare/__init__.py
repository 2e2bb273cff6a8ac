"""Methods side by side on one source: each trained as long, with the same seeds, and what they came to in one table."""
