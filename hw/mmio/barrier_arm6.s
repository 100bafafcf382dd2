//go:build arm && arm.6 && !arm.7

#include "textflag.h"

// func barrier()
TEXT ·barrier(SB), NOSPLIT, $0-0
	MOVW	$0, R0
	MCR	15, 0, R0, C7, C10, 4
	RET
