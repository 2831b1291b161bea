"""Level-triggered reconciling: from a key in the queue to children, pods and status that agree with the resource."""
