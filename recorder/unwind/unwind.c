#include "unwind/unwind.h"

/*
 * Append one frame. false ends the walk: the depth limit, or a return address that lies in no
 * mapping, which no call can have left there (the chain ran through something that is no frame).
 */
static bool put(struct unwind_stack *out, uint64_t address, bool kernel, bool caller,
		unwind_locate *locate, void *ctx)
{
	struct frame_ref *ref;

	if (out->nframes == STACK_MAX_FRAMES) {
		out->quality = QUALITY_TRUNCATED;
		return false;
	}
	ref = &out->frames[out->nframes];
	ref->object = NULL;
	ref->flags = kernel ? FRAME_KERNEL : 0;
	/* A return address may be the first byte of the next function: look up the call before it. */
	if (caller) {
		ref->flags |= FRAME_RETURN_ADDRESS;
		address--;
	}
	ref->offset = address;
	locate(ctx, address, kernel, ref);
	if (caller && !kernel && ref->object && ref->object->key.kind == OBJECT_UNKNOWN) {
		out->quality = QUALITY_BROKEN;
		return false;
	}
	out->nframes++;
	return true;
}

void unwind_user_and_kernel(const struct unwind_input *in, unwind_locate *locate, void *ctx,
			    struct unwind_stack *out)
{
	bool going = true;
	uint32_t i;

	out->nframes = 0;
	out->quality = QUALITY_FP;
	for (i = 0; going && i < in->nkernel; i++)
		going = put(out, in->kernel_chain[i], true, i > 0, locate, ctx);
	for (i = 0; going && i < in->nuser; i++)
		going = put(out, in->user_chain[i], false, i > 0, locate, ctx);
	if (!going)
		return;
	if (in->chain_cut)
		out->quality = QUALITY_TRUNCATED;
	else if (!in->user_expected)
		out->quality = QUALITY_COMPLETE;
	else if (in->nuser < 2)
		out->quality = QUALITY_BROKEN;
}
