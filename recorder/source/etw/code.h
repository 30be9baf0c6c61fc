/*
 * What an address of a trace is: an offset in an image, a managed method, or not known.
 *
 * Images come with the identity of their PDB (GUID and age) where a trace was merged. Managed code
 * is named from method and module records, which mostly come at the end of a file; it wins over the
 * image that its bytes lie in. Kernel images (pid 0) are every process's.
 *
 * Frames of images are OBJECT_PE with the path as people know it and the rva as offset. Frames of
 * managed methods are OBJECT_JIT of their process, epoch = the layer of their range, the address as
 * offset; etw_code_name() names them. Others belong to the unknown object, with their address.
 *
 * One thread at a time; after etw_code_settle(), and until something is learned again, any thread
 * may call etw_code_name(). Source: design page etl-format.md sections 5, 6 and 9.
 */
#ifndef SOURCE_ETW_CODE_H
#define SOURCE_ETW_CODE_H

#include "model/frame.h"
#include "source/etw/state.h"
#include "symbol/reader.h"

#define ETW_IMAGES_MAX (1u << 21)
#define ETW_METHODS_MAX (1u << 22)
#define ETW_MODULES_MAX (1u << 20)

struct etw_image {
	uint64_t base, size;
	int64_t ticks;                       /* of the record that told of it first */
	uint32_t pid, timestamp;             /* of the PE header; 0 = not known */
	const char *path;                    /* as the kernel writes it */
	struct object *object;               /* NULL until it is met */
};

struct etw_pdb {
	struct etw_guid guid;
	uint32_t age;
	const char *name;
};

enum etw_place { ETW_PLACE_UNKNOWN, ETW_PLACE_IMAGE, ETW_PLACE_MANAGED };

struct etw_code;

/* state, frames: borrowed for its life. */
int etw_code_new(struct etw_state *state, struct frames *frames, struct etw_code **out,
		 struct err *err);
/* now_ns: its objects are let go at this time of the recorder's clock. NULL allowed. */
void etw_code_free(struct etw_code *c, uint64_t now_ns);

/*
 * Code that knows only what was mapped or generated at `since` or later, by the state that was renewed
 * before. Its managed frames are of other epochs, as their layers may mean other methods; the old one
 * still names those that it gave out.
 */
int etw_code_renew(struct etw_code *old, struct etw_state *state, int64_t since, struct etw_code **out,
		   struct err *err);

/* Take what a record says; call etw_state_learn() for it first. */
void etw_code_learn(struct etw_code *c, const struct etw_record *record,
		    const struct etw_class *class);
void etw_code_settle(struct etw_code *c);

/* The frame of an address; flags: FRAME_KERNEL is added for images of the kernel. */
enum etw_place etw_code_locate(struct etw_code *c, uint32_t pid, uint64_t address, int64_t ticks,
			       bool kernel, struct frame_ref *out);
/* The name of a managed frame; false when it is none, or its method has no name. */
bool etw_code_name(const struct etw_code *c, const struct object *object, uint64_t offset,
		   struct symbol *out);

/* An image by number, below use.images; its pdb, or false. */
const struct etw_image *etw_code_image(const struct etw_code *c, uint32_t number);
bool etw_code_pdb(const struct etw_code *c, const struct etw_image *image, struct etw_pdb *out);
/* Its object, with a reference that belongs to etw_code; NULL at a ceiling. */
struct object *etw_code_object(struct etw_code *c, uint32_t number);
/* The image that was mapped there at that moment, or ETW_RANGE_NONE. */
uint32_t etw_code_image_at(const struct etw_code *c, uint32_t pid, uint64_t address, int64_t ticks);

struct etw_code_use {
	uint32_t images, pdbs, methods, modules;
	size_t bytes;
	uint64_t refused;
};
void etw_code_use(const struct etw_code *c, struct etw_code_use *out);
uint32_t etw_code_methods(const struct etw_code *c, uint32_t pid);   /* of one process */

#endif
