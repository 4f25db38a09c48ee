// The conformance suite of Gateway API against a cluster of a kubeconfig; run.ts starts one.
package conformance_test

import (
	"testing"

	"sigs.k8s.io/gateway-api/conformance"
)

func TestConformance(t *testing.T) {
	conformance.RunConformance(t)
}
