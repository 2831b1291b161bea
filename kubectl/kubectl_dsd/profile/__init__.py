"""`kubectl dsd profile`: which K is best at which concurrency, measured on a running deployment.

`command` checks and prints, `measurement` changes the schedule and puts it back, `sweep` measures. The arithmetic is in
`intervals`, `choice`, `window`, `plan` and `results`, which are pure.
"""
