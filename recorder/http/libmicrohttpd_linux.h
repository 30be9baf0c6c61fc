/*
 * libmicrohttpd (0.9.59 and later) and its GnuTLS, loaded when somebody wants HTTP: the program
 * does not need them. Never unloaded. Any thread.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/library_linux.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <stdbool.h>

#define LIBMICROHTTPD(F) \
	F(MHD_start_daemon) F(MHD_stop_daemon) F(MHD_add_connection) F(MHD_is_feature_supported) \
	F(MHD_create_response_from_buffer) F(MHD_create_response_from_fd64) \
	F(MHD_add_response_header) F(MHD_queue_response) F(MHD_destroy_response) \
	F(MHD_lookup_connection_value) F(MHD_get_connection_info) \
	F(MHD_basic_auth_get_username_password) F(MHD_free)

#define GNUTLS(F) \
	F(gnutls_certificate_allocate_credentials) F(gnutls_certificate_free_credentials) \
	F(gnutls_certificate_set_x509_key_mem) F(gnutls_strerror)

struct libmicrohttpd {
	LIBMICROHTTPD(LIBRARY_MEMBER)
};
struct gnutls {
	GNUTLS(LIBRARY_MEMBER)
};

/* ERR_UNSUPPORTED: it is missing, and the sentence names the package; tls: it cannot do TLS. */
int libmicrohttpd_load(bool tls, struct libmicrohttpd *out, struct err *err);

/*
 * Are these PEM texts a certificate and its key? libmicrohttpd starts with any, and then ends each
 * connection. ERR_USAGE: no, in GnuTLS's words.
 */
int libmicrohttpd_check_pair(const struct buf *cert, const struct buf *key, struct err *err);
