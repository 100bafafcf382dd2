#include "textflag.h"

// func load32(p unsafe.Pointer) uint32
TEXT ·load32(SB), NOSPLIT, $0-12
	MOVD	p+0(FP), R0
	MOVWU	(R0), R1
	MOVW	R1, ret+8(FP)
	RET

// func store32(p unsafe.Pointer, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVD	p+0(FP), R0
	MOVWU	v+8(FP), R1
	MOVW	R1, (R0)
	RET

// func store16(p unsafe.Pointer, v uint16)
TEXT ·store16(SB), NOSPLIT, $0-10
	MOVD	p+0(FP), R0
	MOVHU	v+8(FP), R1
	MOVH	R1, (R0)
	RET

// func store8(p unsafe.Pointer, v uint8)
TEXT ·store8(SB), NOSPLIT, $0-9
	MOVD	p+0(FP), R0
	MOVBU	v+8(FP), R1
	MOVB	R1, (R0)
	RET

// Single loads and stores, no LDP or STP: a pair may be split and repeated by an interrupt on Device memory. The heap's
// side may be unaligned.
//
// func copyWords(dst, src unsafe.Pointer, words int)
TEXT ·copyWords(SB), NOSPLIT, $0-24
	MOVD	dst+0(FP), R0
	MOVD	src+8(FP), R1
	MOVD	words+16(FP), R2
	SUBS	$4, R2, R2
	BLT	tail
four:
	MOVWU	(R1), R3
	MOVWU	4(R1), R4
	MOVWU	8(R1), R5
	MOVWU	12(R1), R6
	MOVW	R3, (R0)
	MOVW	R4, 4(R0)
	MOVW	R5, 8(R0)
	MOVW	R6, 12(R0)
	ADD	$16, R1, R1
	ADD	$16, R0, R0
	SUBS	$4, R2, R2
	BGE	four
tail:
	ADDS	$4, R2, R2
	BEQ	done
one:
	MOVWU.P	4(R1), R3
	MOVW.P	R3, 4(R0)
	SUBS	$1, R2, R2
	BNE	one
done:
	RET

// func barrier()
TEXT ·barrier(SB), NOSPLIT, $0-0
	DSB	$15 // SY: full system, loads and stores
	RET
