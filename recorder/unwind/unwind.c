#include "unwind/unwind.h"

static void put(struct unwind_stack *out, uint64_t address, bool kernel, bool caller,
		unwind_locate *locate, void *ctx)
{
	struct frame_ref *ref;

	if (out->nframes == STACK_MAX_FRAMES) {
		out->quality = QUALITY_TRUNCATED;
		return;
	}
	ref = &out->frames[out->nframes++];
	ref->object = NULL;
	ref->flags = kernel ? FRAME_KERNEL : 0;
	/* A return address may be the first byte of the next function: look up the call before it. */
	if (caller) {
		ref->flags |= FRAME_RETURN_ADDRESS;
		address--;
	}
	ref->offset = address;
	locate(ctx, address, kernel, ref);
}

void unwind_user_and_kernel(const struct unwind_input *in, unwind_locate *locate, void *ctx,
			    struct unwind_stack *out)
{
	uint32_t i;

	out->nframes = 0;
	out->quality = QUALITY_FP;
	for (i = 0; i < in->nkernel; i++)
		put(out, in->kernel_chain[i], true, i > 0, locate, ctx);
	for (i = 0; i < in->nuser; i++)
		put(out, in->user_chain[i], false, i > 0, locate, ctx);
	if (out->quality == QUALITY_TRUNCATED)
		return;
	if (in->chain_cut)
		out->quality = QUALITY_TRUNCATED;
	else if (!in->user_expected)
		out->quality = QUALITY_COMPLETE;
	else if (in->nuser < 2)
		out->quality = QUALITY_BROKEN;
}
