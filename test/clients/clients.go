// Package clients names the modules whose own tests are run against `servicenet up` (`npm run test:clients`).
package clients

import (
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/controller-runtime/pkg/webhook"
)
