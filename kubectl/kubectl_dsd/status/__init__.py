"""`kubectl dsd status`: conditions, pods and schedules of one deployment, or a line for each of many."""
