"""`kubectl dsd explain`: why a deployment is not Ready, and what to do.

`facts` asks the cluster for everything once. The `check_*` modules are pure: each looks at the facts and names causes.
`verdict` puts them in order. Where no check knows better, the operator's own condition is the cause.
"""
