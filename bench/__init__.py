"""Benchmarks: each module measures one thing and writes bench/results/NAME.json; `report` makes the page of them."""
