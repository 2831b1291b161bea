"""Pictures of the dashboards, drawn from a real Prometheus: Grafana itself is not needed for it.

`session` brings engines, load and a Prometheus; `page` lays a dashboard out on its own grid; `lines`, `numbers`, `maps`
and `tables` draw the kinds of panels, and `frames` does to tables what Grafana's transformations do.
"""
