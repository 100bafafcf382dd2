// Package sim is a simulated Ethernet board: an Odroid-C1 as its driver sees it, register by register.
package sim
