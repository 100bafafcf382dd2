#include "textflag.h"

// func load32(p unsafe.Pointer) uint32
TEXT ·load32(SB), NOSPLIT, $0-12
	MOVQ	p+0(FP), AX
	MOVL	(AX), AX
	MOVL	AX, ret+8(FP)
	RET

// func store32(p unsafe.Pointer, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVQ	p+0(FP), AX
	MOVL	v+8(FP), BX
	MOVL	BX, (AX)
	RET

// func store16(p unsafe.Pointer, v uint16)
TEXT ·store16(SB), NOSPLIT, $0-10
	MOVQ	p+0(FP), AX
	MOVW	v+8(FP), BX
	MOVW	BX, (AX)
	RET

// func store8(p unsafe.Pointer, v uint8)
TEXT ·store8(SB), NOSPLIT, $0-9
	MOVQ	p+0(FP), AX
	MOVB	v+8(FP), BX
	MOVB	BX, (AX)
	RET

// One MOVL reads and one writes each word. The heap's side may be unaligned.
//
// func copyWords(dst, src unsafe.Pointer, words int)
TEXT ·copyWords(SB), NOSPLIT, $0-24
	MOVQ	dst+0(FP), DI
	MOVQ	src+8(FP), SI
	MOVQ	words+16(FP), CX
	SUBQ	$4, CX
	JLT	tail
four:
	MOVL	(SI), AX
	MOVL	4(SI), BX
	MOVL	8(SI), DX
	MOVL	12(SI), R8
	MOVL	AX, (DI)
	MOVL	BX, 4(DI)
	MOVL	DX, 8(DI)
	MOVL	R8, 12(DI)
	ADDQ	$16, SI
	ADDQ	$16, DI
	SUBQ	$4, CX
	JGE	four
tail:
	ADDQ	$4, CX
	JEQ	done
one:
	MOVL	(SI), AX
	MOVL	AX, (DI)
	ADDQ	$4, SI
	ADDQ	$4, DI
	SUBQ	$1, CX
	JNE	one
done:
	RET

// func barrier()
TEXT ·barrier(SB), NOSPLIT, $0-0
	MFENCE
	RET
