//go:build arm && arm.7

#include "textflag.h"

// func barrier()
TEXT ·barrier(SB), NOSPLIT, $0-0
	WORD	$0xF57FF04F // DSB SY, which the assembler does not know
	RET
