#include "screen/ncurses_linux.h"

#include <dlfcn.h>
#include <string.h>

/* Returns what is missing; NULL = nothing. */
static const char *load(struct ncurses *lib)
{
	void *handle = dlopen("libncursesw.so.6", RTLD_NOW | RTLD_LOCAL), *at;

	if (!handle)
		return "libncursesw.so.6";
#define LOAD(name) \
	at = dlsym(handle, #name); \
	if (!at) \
		return #name; \
	memcpy(&lib->name, &at, sizeof(at));
	NCURSES(LOAD)
#undef LOAD
	return NULL;
}

int ncurses_load(struct ncurses *out, struct err *err)
{
	const char *missing = load(out);

	if (missing)
		return err_set(err, ERR_UNSUPPORTED, "%s is missing: install libncursesw6 (Debian) "
			       "or ncurses-libs (Fedora, others)", missing);
	return 0;
}
