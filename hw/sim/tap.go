package sim

// TAPOptions say which TAP interface [OpenTAP] opens.
type TAPOptions struct {
	// Name is the interface's name, as "tap0". It is created if there is none, and vanishes with Close then.
	Name string
}
