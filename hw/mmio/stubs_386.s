#include "textflag.h"

// func load32(p unsafe.Pointer) uint32
TEXT ·load32(SB), NOSPLIT, $0-8
	MOVL	p+0(FP), AX
	MOVL	(AX), AX
	MOVL	AX, ret+4(FP)
	RET

// func store32(p unsafe.Pointer, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-8
	MOVL	p+0(FP), AX
	MOVL	v+4(FP), BX
	MOVL	BX, (AX)
	RET

// func store16(p unsafe.Pointer, v uint16)
TEXT ·store16(SB), NOSPLIT, $0-6
	MOVL	p+0(FP), AX
	MOVW	v+4(FP), BX
	MOVW	BX, (AX)
	RET

// func store8(p unsafe.Pointer, v uint8)
TEXT ·store8(SB), NOSPLIT, $0-5
	MOVL	p+0(FP), AX
	MOVB	v+4(FP), BX
	MOVB	BX, (AX)
	RET

// One MOVL reads and one writes each word. The heap's side may be unaligned.
//
// func copyWords(dst, src unsafe.Pointer, words int)
TEXT ·copyWords(SB), NOSPLIT, $0-12
	MOVL	dst+0(FP), DI
	MOVL	src+4(FP), SI
	MOVL	words+8(FP), CX
	SUBL	$2, CX
	JLT	tail
two:
	MOVL	(SI), AX
	MOVL	4(SI), BX
	MOVL	AX, (DI)
	MOVL	BX, 4(DI)
	ADDL	$8, SI
	ADDL	$8, DI
	SUBL	$2, CX
	JGE	two
tail:
	ADDL	$2, CX
	JEQ	done
	MOVL	(SI), AX
	MOVL	AX, (DI)
done:
	RET

// MFENCE needs SSE2, which GO386=softfloat does without; a locked instruction drains the same buffers.
//
// func barrier()
TEXT ·barrier(SB), NOSPLIT, $4-0
	LOCK
	ADDL	$0, 0(SP)
	RET
