"""For researchers: methods side by side, the paper's tables and figures, charts."""
