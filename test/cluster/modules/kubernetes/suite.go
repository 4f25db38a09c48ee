//go:build tools

// Package kubernetes names the test program, which a tool directive cannot.
package kubernetes

import _ "k8s.io/kubernetes/test/e2e"
