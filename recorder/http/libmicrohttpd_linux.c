#include "http/libmicrohttpd_linux.h"

#include <dlfcn.h>
#include <string.h>

/* Returns what is missing; NULL = nothing. */
static const char *load(struct libmicrohttpd *lib)
{
	void *handle = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL), *at;

	if (!handle)
		return "libmicrohttpd.so.12";
#define LOAD(name) \
	at = dlsym(handle, #name); \
	if (!at) \
		return #name; \
	memcpy(&lib->name, &at, sizeof(at));
	LIBMICROHTTPD(LOAD)
#undef LOAD
	return NULL;
}

int libmicrohttpd_load(bool tls, struct libmicrohttpd *out, struct err *err)
{
	const char *missing = load(out);

	if (missing)
		return err_set(err, ERR_UNSUPPORTED, "--http needs GNU libmicrohttpd, and %s is "
			       "missing: install libmicrohttpd12 (Debian) or libmicrohttpd "
			       "(Fedora, others)", missing);
	if (tls && out->MHD_is_feature_supported(MHD_FEATURE_SSL) != MHD_YES)
		return err_set(err, ERR_UNSUPPORTED, "--http-cert: this libmicrohttpd was built "
			       "without TLS");
	return 0;
}
