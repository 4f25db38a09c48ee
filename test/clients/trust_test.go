package clients

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"strings"
	"testing"
)

// TestTrust asks crypto/x509 about each case of test/support/certificates.ts, so that its verdicts are Go's.
func TestTrust(t *testing.T) {
	text, err := os.ReadFile(os.Getenv("TRUST_CASES"))
	if err != nil {
		t.Skip("TRUST_CASES names no file: run `npm run test:clients`")
	}
	var cases []struct {
		Title, Bundle, Host string
		Chain               []string
		Fault               *string
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Title, func(t *testing.T) {
			options := x509.VerifyOptions{DNSName: c.Host, Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool()}
			options.Roots.AppendCertsFromPEM([]byte(c.Bundle))
			for _, sent := range c.Chain[1:] {
				options.Intermediates.AppendCertsFromPEM([]byte(sent))
			}
			block, _ := pem.Decode([]byte(c.Chain[0]))
			leaf, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				t.Fatal(err)
			}
			_, err = leaf.Verify(options)
			switch {
			case c.Fault == nil && err != nil:
				t.Errorf("want it trusted, got %v", err)
			case c.Fault != nil && err == nil:
				t.Errorf("want %q, got it trusted", *c.Fault)
			case c.Fault != nil && !strings.Contains(err.Error(), *c.Fault):
				t.Errorf("want %q, got %v", *c.Fault, err)
			}
		})
	}
}
