"""Tables and figures, written: charts as SVG and PNG from one list of shapes, tables as Markdown."""

from propos.study.figures.drawing import Sheet, draw
from propos.study.figures.markdown import markdown_table
from propos.study.figures.parts import Chart, Dots, Drawn, Map, Pictures, Series, TextTable

__all__ = ["Chart", "Dots", "Drawn", "Map", "Pictures", "Series", "Sheet", "TextTable", "draw", "markdown_table"]
