package mmio

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// hangGuard is how long anything may take before a test gives up on it.
const hangGuard = 30 * time.Second

// within runs f and fails the test if it hangs.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(hangGuard):
		t.Fatalf("%s hangs", what)
	}
}

// wantError checks that err is what it should be and says what it should say.
func wantError(t *testing.T, err, want error, texts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want one that is %v", err, want)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}
