"""What people look at and correct: the page, the server behind it, exports."""
