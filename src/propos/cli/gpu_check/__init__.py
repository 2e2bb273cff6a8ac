"""The self-test of `propos doctor --gpu`: every kind of work on the card and on the CPU, compared within bounds."""
