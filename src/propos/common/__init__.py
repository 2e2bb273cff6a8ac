"""Small helpers that every room may use: errors, texts, names, files of settings."""
