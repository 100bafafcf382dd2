#include "textflag.h"

// func load32(p unsafe.Pointer) uint32
TEXT ·load32(SB), NOSPLIT, $0-8
	MOVW	p+0(FP), R0
	MOVW	(R0), R1
	MOVW	R1, ret+4(FP)
	RET

// func store32(p unsafe.Pointer, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-8
	MOVW	p+0(FP), R0
	MOVW	v+4(FP), R1
	MOVW	R1, (R0)
	RET

// func store16(p unsafe.Pointer, v uint16)
TEXT ·store16(SB), NOSPLIT, $0-6
	MOVW	p+0(FP), R0
	MOVHU	v+4(FP), R1
	MOVH	R1, (R0)
	RET

// func store8(p unsafe.Pointer, v uint8)
TEXT ·store8(SB), NOSPLIT, $0-5
	MOVW	p+0(FP), R0
	MOVBU	v+4(FP), R1
	MOVB	R1, (R0)
	RET

// Single loads and stores, no LDM, LDRD or NEON: multiples may be abandoned and repeated by an interrupt on Device memory,
// and vectors need not be aligned for the assembler to accept them. From ARMv6 on the heap's side may be unaligned; for
// ARMv5 the caller sees to it.
//
// func copyWords(dst, src unsafe.Pointer, words int)
TEXT ·copyWords(SB), NOSPLIT, $0-12
	MOVW	dst+0(FP), R0
	MOVW	src+4(FP), R1
	MOVW	words+8(FP), R2
	SUB.S	$4, R2
	BLT	tail
four:
	MOVW	(R1), R3
	MOVW	4(R1), R4
	MOVW	8(R1), R5
	MOVW	12(R1), R6
	MOVW	R3, (R0)
	MOVW	R4, 4(R0)
	MOVW	R5, 8(R0)
	MOVW	R6, 12(R0)
	ADD	$16, R1
	ADD	$16, R0
	SUB.S	$4, R2
	BGE	four
tail:
	ADD.S	$4, R2
	BEQ	done
one:
	MOVW.P	4(R1), R3
	MOVW.P	R3, 4(R0)
	SUB.S	$1, R2
	BNE	one
done:
	RET
