"""The Grafana dashboards as code: `python -m tools.dashboards` writes the JSON that the chart ships.

`promql` holds the questions, `panels` and `frame` the looks, `fleet`, `deployment` and `operators` one dashboard each;
`grafana` does what Grafana does with a query, for the tests and for `preview`, which draws pictures.
"""
