"""Small helpers for all packages: errors, texts, names, settings files."""
