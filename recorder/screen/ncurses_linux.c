#include "screen/ncurses_linux.h"

#include <stddef.h>

int ncurses_load(struct ncurses *out, struct err *err)
{
	static const char *const names[] = {NCURSES(LIBRARY_NAME) NULL};
	const char *missing = library_load("libncursesw.so.6", names, out);

	if (missing)
		return err_set(err, ERR_UNSUPPORTED, "%s is missing: install libncursesw6 (Debian) "
			       "or ncurses-libs (Fedora, others)", missing);
	return 0;
}
