"""Reproduction of the paper's tables and figures, with our numbers next to the paper's.

`items` lists the cells of each table and figure, `budgets` how a cell is trained, `cell_plan` trains each once, and
`assembly` makes tables and figures from finished cells.
"""
