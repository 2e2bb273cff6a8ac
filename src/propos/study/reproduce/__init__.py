"""The paper's tables and figures, made again: each is a command, its runs are kept, ours stands beside the paper's.

`items` says which cells a table or figure is made of, `budgets` how a cell is trained with the means there are,
`carrying` trains each once, and `assembling` makes tables and figures of what is finished.
"""
