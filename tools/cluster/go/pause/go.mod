module dsd-operator.io/tools/cluster/pause

go 1.24.0
