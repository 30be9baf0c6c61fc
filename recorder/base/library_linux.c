#include "base/library_linux.h"

#include <dlfcn.h>
#include <string.h>

const char *library_load(const char *file, const char *const *names, void *functions)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL), *at;
	char *to = functions;

	if (!handle)
		return file;
	for (; *names; names++, to += sizeof(at)) {
		at = dlsym(handle, *names);
		if (!at)
			return *names;
		memcpy(to, &at, sizeof(at)); /* C converts no void * to a function's */
	}
	return NULL;
}
