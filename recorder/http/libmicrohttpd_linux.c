#include "http/libmicrohttpd_linux.h"

#include <stddef.h>

int libmicrohttpd_load(bool tls, struct libmicrohttpd *out, struct err *err)
{
	static const char *const names[] = {LIBMICROHTTPD(LIBRARY_NAME) NULL};
	const char *missing = library_load("libmicrohttpd.so.12", names, out);

	if (missing)
		return err_set(err, ERR_UNSUPPORTED, "--http needs GNU libmicrohttpd, and %s is "
			       "missing: install libmicrohttpd12 (Debian) or libmicrohttpd "
			       "(Fedora, others)", missing);
	if (tls && out->MHD_is_feature_supported(MHD_FEATURE_SSL) != MHD_YES)
		return err_set(err, ERR_UNSUPPORTED, "--http-cert: this libmicrohttpd was built "
			       "without TLS");
	return 0;
}

int libmicrohttpd_check_pair(const struct buf *cert, const struct buf *key, struct err *err)
{
	static const char *const names[] = {GNUTLS(LIBRARY_NAME) NULL};
	gnutls_datum_t cert_pem = {(unsigned char *)cert->data, (unsigned)cert->len};
	gnutls_datum_t key_pem = {(unsigned char *)key->data, (unsigned)key->len};
	gnutls_certificate_credentials_t pair;
	struct gnutls lib;
	const char *missing = library_load("libgnutls.so.30", names, &lib);
	int rc;

	if (missing)
		return err_set(err, ERR_UNSUPPORTED, "--http-cert needs GnuTLS, and %s is missing",
			       missing);
	if (lib.gnutls_certificate_allocate_credentials(&pair))
		return err_memory(err, "for a certificate");
	rc = lib.gnutls_certificate_set_x509_key_mem(pair, &cert_pem, &key_pem,
						     GNUTLS_X509_FMT_PEM);
	lib.gnutls_certificate_free_credentials(pair);
	return rc < 0 ? err_set(err, ERR_USAGE, "%s", lib.gnutls_strerror(rc)) : 0;
}
