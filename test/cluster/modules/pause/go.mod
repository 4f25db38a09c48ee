module servicenet.dev/test/cluster/pause

go 1.26
