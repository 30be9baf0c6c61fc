/* Connections: libmicrohttpd calls the front desk, on a thread for each. See http/server.h. */
#include "http/server.h"

#include "http/desk_linux.h"
#include "http/libmicrohttpd_linux.h"
#include "http/listen_linux.h"
#include "http/token_linux.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUEST_NS (10 * NS_PER_SEC)         /* from the connection, or the answer before, on */
#define SENDING_NS (120 * NS_PER_SEC)        /* until the client has taken the answer */
#define IDLE_S 10u
#define HEADERS_MAX ((size_t)32 << 10)
#define STACK_BYTES ((size_t)512 << 10)
#define LOOK_NS NS_PER_SEC
#define REFUSED_NS (100 * NS_PER_MS)

/* A connection, for clients that are too slow: libmicrohttpd only knows those that stand still. */
struct slot {
	int fd;                              /* -1 = free */
	uint64_t until_ns;                   /* its client must be done; 0 = we are at work */
};

struct http_server {
	struct http_config cfg;
	struct libmicrohttpd lib;
	struct MHD_Daemon *daemon;
	struct listening listening;
	struct buf token, cert, key;
	struct desk desk;
	struct os_thread *thread;

	struct os_mutex *lock;
	struct os_cond *changed;             /* started */
	struct os_wake *wake;                /* a slot is free, or it ends */
	bool started, stop;                  /* started: or failed, then rc and err say why */
	int rc;
	struct err err;
	struct slot slots[HTTP_CONNECTIONS_MAX];
	uint64_t looked_ns;                  /* drop_slow(), last */
};

/* One request, from its first line to the end of its answer. */
struct asked {
	struct MHD_Connection *connection;
	struct http_server *server;
	struct buf body;
};

/* ---- slow clients ---------------------------------------------------------------------------- */

static void set_until(struct http_server *h, struct slot *slot, uint64_t from_now_ns)
{
	if (!slot)
		return;
	os_mutex_lock(h->lock);
	slot->until_ns = from_now_ns ? os_now_ns() + from_now_ns : 0;
	os_mutex_unlock(h->lock);
}

static struct slot *slot_of(struct http_server *h, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		h->lib.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static int socket_of(struct http_server *h, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		h->lib.MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct http_server *h = ctx;
	struct slot *slot = *socket_context;
	int fd = socket_of(h, connection);
	unsigned i;

	os_mutex_lock(h->lock);
	if (what == MHD_CONNECTION_NOTIFY_CLOSED && slot) {
		slot->fd = -1;
		os_wake(h->wake);
	}
	for (i = 0; what == MHD_CONNECTION_NOTIFY_STARTED && i < HTTP_CONNECTIONS_MAX; i++)
		if (h->slots[i].fd == fd)
			*socket_context = &h->slots[i];
	os_mutex_unlock(h->lock);
}

static struct slot *free_slot(struct http_server *h)
{
	struct slot *found = NULL;
	unsigned i;

	os_mutex_lock(h->lock);
	for (i = 0; !found && i < HTTP_CONNECTIONS_MAX; i++)
		if (h->slots[i].fd < 0)
			found = &h->slots[i];
	os_mutex_unlock(h->lock);
	return found;
}

/*
 * Take the next client, unless all slots are taken: then clients wait in the system's queue. With a
 * thread for each connection libmicrohttpd itself would close what exceeds its limit.
 */
static void accept_next(struct http_server *h, struct slot *slot)
{
	union {
		struct sockaddr any;
		struct sockaddr_storage room;
	} peer;
	socklen_t n = sizeof(peer);
	int fd = accept4(h->listening.fd, &peer.any, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			os_sleep_ns(REFUSED_NS);     /* no descriptor is free */
		return;
	}
	os_mutex_lock(h->lock);
	*slot = (struct slot){fd, os_now_ns() + REQUEST_NS};
	os_mutex_unlock(h->lock);
	if (h->lib.MHD_add_connection(h->daemon, fd, &peer.any, n) != MHD_YES) {
		os_mutex_lock(h->lock);
		slot->fd = -1;               /* closed already */
		os_mutex_unlock(h->lock);
	}
}

/* What it sent waits for us: a busy machine, on which threads of low priority get no CPU. */
static bool is_ours_to_read(const struct slot *slot)
{
	int unread = 0;

	return ioctl(slot->fd, FIONREAD, &unread) == 0 && unread > 0;
}

/*
 * The end of the connection follows from it, on its own thread. Time in which nothing of this
 * process ran is not the clients': what their threads have read by then waits for them to go on.
 */
static void drop_slow(struct http_server *h)
{
	uint64_t now_ns = os_now_ns(), stood_ns = 0;
	unsigned i, n = 0;

	if (h->looked_ns && now_ns - h->looked_ns > 2 * LOOK_NS)
		stood_ns = now_ns - h->looked_ns;
	h->looked_ns = now_ns;
	os_mutex_lock(h->lock);
	for (i = 0; i < HTTP_CONNECTIONS_MAX; i++) {
		struct slot *slot = &h->slots[i];

		if (slot->until_ns)
			slot->until_ns += stood_ns;
		if (slot->fd < 0 || !slot->until_ns || now_ns < slot->until_ns ||
		    is_ours_to_read(slot))
			continue;
		shutdown(slot->fd, SHUT_RDWR);
		slot->until_ns = 0;
		n++;
	}
	os_mutex_unlock(h->lock);
	os_mutex_lock(h->desk.lock);
	h->desk.slow += n;
	os_mutex_unlock(h->desk.lock);
}

/* ---- who asks -------------------------------------------------------------------------------- */

static const char *header_of(void *ctx, const char *name)
{
	const struct asked *a = ctx;

	return a->server->lib.MHD_lookup_connection_value(a->connection, MHD_HEADER_KIND, name);
}

static const char *query_of(void *ctx, const char *name)
{
	const struct asked *a = ctx;

	return a->server->lib.MHD_lookup_connection_value(a->connection, MHD_GET_ARGUMENT_KIND,
							  name);
}

/* "Authorization: Bearer TOKEN"; or Basic with the token as password, for browsers. */
static bool shows_token(const struct asked *a)
{
	static const char bearer[] = "Bearer ";
	const char *shown = header_of((void *)(uintptr_t)a, "Authorization");
	struct libmicrohttpd *lib = &a->server->lib;
	char *user, *password = NULL;
	bool same;

	if (!a->server->token.len || !shown)
		return false;
	if (strncmp(shown, bearer, sizeof(bearer) - 1) == 0)
		return token_same(&a->server->token, shown + sizeof(bearer) - 1);
	user = lib->MHD_basic_auth_get_username_password(a->connection, &password);
	same = user && token_same(&a->server->token, password);
	if (user)
		lib->MHD_free(user);
	if (password)
		lib->MHD_free(password);
	return same;
}

/* root or the recorder's own user, at the other end of a Unix socket. */
static bool is_trusted_peer(const struct asked *a)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	return a->server->listening.is_unix &&
	       getsockopt(socket_of(a->server, a->connection), SOL_SOCKET, SO_PEERCRED, &peer,
			  &n) == 0 &&
	       (peer.uid == 0 || peer.uid == geteuid());
}

/* A browser shows its password to us whatever page it is that lets it ask: other pages may not. */
static bool is_foreign_page(const struct asked *a)
{
	void *ctx = (void *)(uintptr_t)a;
	const char *origin = header_of(ctx, "Origin"), *host = header_of(ctx, "Host");
	const char *at = origin ? strstr(origin, "://") : NULL;

	return origin && (!at || !host || strcmp(at + 3, host) != 0);
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct MHD_Response *response_of(struct libmicrohttpd *lib, struct answer *a)
{
	struct MHD_Response *r;
	struct stat st;

	if (a->has_file && fstat(a->file, &st) == 0) {
		r = lib->MHD_create_response_from_fd64((uint64_t)st.st_size, a->file);
		a->has_file = !r;            /* it closes the file */
		return r;
	}
	r = lib->MHD_create_response_from_buffer(a->body.len, a->body.data, MHD_RESPMEM_MUST_FREE);
	if (r)
		a->body = (struct buf){0};
	return r;
}

static enum MHD_Result send_answer(struct asked *asked, struct answer *a)
{
	struct libmicrohttpd *lib = &asked->server->lib;
	struct MHD_Response *r = response_of(lib, a);
	enum MHD_Result sent;

	answer_free(a);
	if (!r)
		return MHD_NO;
	lib->MHD_add_response_header(r, "Content-Type", a->type);
	lib->MHD_add_response_header(r, "Cache-Control", "no-store");
	lib->MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	if (a->extra)
		lib->MHD_add_response_header(r, a->extra, a->extra_value);
	sent = lib->MHD_queue_response(asked->connection, a->status, r);
	lib->MHD_destroy_response(r);
	return sent;
}

/* The first call: the head of the request is here. May answer already. */
static enum MHD_Result begin(struct asked *a)
{
	const char *length = header_of(a, "Content-Length");
	struct answer answer = {0};

	a->body.max_bytes = HTTP_BODY_MAX;
	if (length && strtoull(length, NULL, 10) > HTTP_BODY_MAX)
		answer_text(&answer, 413, "a body has at most %zu bytes", HTTP_BODY_MAX);
	else if (is_foreign_page(a))
		answer_text(&answer, 403, "a page of another site must not ask this");
	else
		return MHD_YES;
	return send_answer(a, &answer);
}

static enum MHD_Result finish(struct asked *a, const char *method, const char *path)
{
	bool full = shows_token(a) || is_trusted_peer(a);
	struct request r = {
		.method = method, .path = path, .header = header_of, .query = query_of, .ctx = a,
		.body = &a->body, .open_only = !full, .has_token = a->server->token.len != 0,
	};
	struct slot *slot = slot_of(a->server, a->connection);
	struct answer answer = {0};
	enum MHD_Result sent;

	set_until(a->server, slot, 0);
	if (a->body.failed)
		answer_text(&answer, 413, "a body has at most %zu bytes", HTTP_BODY_MAX);
	else
		desk_answer(&a->server->desk, &r, &answer);
	sent = send_answer(a, &answer);
	set_until(a->server, slot, SENDING_NS);
	return sent;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *bytes,
				  size_t *nbytes, void **request)
{
	struct asked *a = *request;

	(void)version;
	if (!a) {
		a = calloc(1, sizeof(*a));
		if (!a)
			return MHD_NO;
		a->connection = connection;
		a->server = ctx;
		*request = a;
		return begin(a);
	}
	if (*nbytes) {
		buf_put(&a->body, bytes, *nbytes);
		*nbytes = 0;
		return MHD_YES;
	}
	return finish(a, method, path);
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode how)
{
	struct asked *a = *request;

	(void)how;
	if (!a)
		return;
	set_until(ctx, slot_of(ctx, connection), REQUEST_NS);
	buf_free(&a->body);
	free(a);
	*request = NULL;
}

/* ---- begin and end --------------------------------------------------------------------------- */

/* What libmicrohttpd says while it starts; later nobody needs to know. */
static void on_log(void *ctx, const char *format, va_list args)
{
	struct http_server *h = ctx;
	size_t n;

	os_mutex_lock(h->lock);
	if (!h->started) {
		vsnprintf(h->err.text, sizeof(h->err.text), format, args);
		n = strlen(h->err.text);
		while (n && h->err.text[n - 1] == '\n')
			h->err.text[--n] = '\0';
	}
	os_mutex_unlock(h->lock);
}

static struct MHD_Daemon *start(struct http_server *h)
{
	bool tls = h->cfg.cert_file != NULL;
	struct MHD_OptionItem tls_items[] = {
		{MHD_OPTION_HTTPS_MEM_CERT, 0, h->cert.data},
		{MHD_OPTION_HTTPS_MEM_KEY, 0, h->key.data},
		{MHD_OPTION_END, 0, NULL},
	}, no_items[] = {{MHD_OPTION_END, 0, NULL}};

	return h->lib.MHD_start_daemon(
		MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL |
			MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
			(tls ? MHD_USE_TLS : 0),
		0, NULL, NULL, on_request, h,
		MHD_OPTION_EXTERNAL_LOGGER, on_log, h,
		MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTIONS_MAX * 2,    /* ended ones too */
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, HEADERS_MAX,
		MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, h,
		MHD_OPTION_ARRAY, tls ? tls_items : no_items, MHD_OPTION_END);
}

/* Its threads have this one's low priority and rights. */
static void server_main(void *ctx)
{
	struct http_server *h = ctx;
	bool stop = false;

	os_rights_lower();
	os_thread_priority(OS_PRIORITY_LOW);
	h->daemon = start(h);
	os_mutex_lock(h->lock);
	if (!h->daemon)
		h->rc = err_prefix(&h->err, "--http %.200s: libmicrohttpd does not start",
				   h->cfg.address);
	h->started = true;
	os_cond_broadcast(h->changed);
	os_mutex_unlock(h->lock);
	while (h->daemon && !stop) {
		struct slot *slot = free_slot(h);
		struct pollfd p[] = {
			{.fd = os_wake_fd(h->wake), .events = POLLIN},
			{.fd = slot ? h->listening.fd : -1, .events = POLLIN},
		};

		if (os_poll(p, 2, LOOK_NS) && p[0].revents)
			os_wake_clear(h->wake);
		if (p[1].revents)
			accept_next(h, slot);
		drop_slow(h);
		os_mutex_lock(h->lock);
		stop = h->stop;
		os_mutex_unlock(h->lock);
	}
	if (h->daemon)
		h->lib.MHD_stop_daemon(h->daemon);
}

static int load(const struct http_config *cfg, struct http_server *h, struct err *err)
{
	bool local, tls = cfg->cert_file && cfg->key_file;
	int rc = listening_check(cfg->address, &local, err);

	if (!rc && !cfg->cert_file != !cfg->key_file)
		rc = err_set(err, ERR_USAGE, "--http-cert and --http-key go together");
	if (!rc && !local && !(tls && cfg->token_file))
		rc = err_set(err, ERR_USAGE, "--http %.200s is reached from other machines: that "
			     "needs --http-token, --http-cert and --http-key", cfg->address);
	if (!rc && cfg->token_file)
		rc = token_load(cfg->token_file, &h->token, err);
	if (!rc && tls)
		rc = pem_load(cfg->cert_file, false, &h->cert, err);
	if (!rc && tls)
		rc = pem_load(cfg->key_file, true, &h->key, err);
	if (!rc)
		rc = libmicrohttpd_load(tls, &h->lib, err);
	if (!rc && tls && libmicrohttpd_check_pair(&h->cert, &h->key, err))
		rc = err_prefix(err, "--http-cert %.200s with --http-key %.200s",
				cfg->cert_file, cfg->key_file);
	return rc;
}

static void let_go(struct http_server *h)
{
	listening_close(&h->listening);
	desk_close(&h->desk);
	os_wake_free(h->wake);
	os_cond_free(h->changed);
	os_mutex_free(h->lock);
	buf_free(&h->token);
	buf_free(&h->cert);
	if (h->key.data)
		explicit_bzero(h->key.data, h->key.len);
	buf_free(&h->key);
	free(h);
}

int http_server_check(const struct http_config *cfg, struct err *err)
{
	struct http_server *h = calloc(1, sizeof(*h));
	int rc;

	if (!h)
		return err_memory(err, "for answers over HTTP");
	h->listening.fd = -1;
	rc = load(cfg, h, err);
	let_go(h);
	return rc;
}

/* A socket of the service manager is looked at only now. */
static int listen_there(struct http_server *h, struct err *err)
{
	int rc = listening_open(h->cfg.address, &h->listening, err);

	if (!rc && !h->listening.local && !(h->cfg.cert_file && h->token.len))
		rc = err_set(err, ERR_USAGE, "--http %.200s is reached from other machines: that "
			     "needs --http-token, --http-cert and --http-key", h->cfg.address);
	return rc;
}

int http_server_open(const struct http_config *cfg, struct http_server **out, struct err *err)
{
	struct http_server *h = calloc(1, sizeof(*h));
	unsigned i;
	int rc;

	if (!h)
		return err_memory(err, "for answers over HTTP");
	h->cfg = *cfg;
	h->listening.fd = -1;
	for (i = 0; i < HTTP_CONNECTIONS_MAX; i++)
		h->slots[i].fd = -1;
	h->lock = os_mutex_new();
	h->changed = os_cond_new();
	h->wake = os_wake_new();
	rc = desk_open(&h->desk, &h->cfg, err);
	if (!rc && (!h->lock || !h->changed || !h->wake))
		rc = err_memory(err, "for answers over HTTP");
	if (!rc)
		rc = load(cfg, h, err);
	if (!rc)
		rc = listen_there(h, err);
	if (!rc)
		rc = os_thread_start("http", server_main, h, &h->thread, err);
	if (rc) {
		let_go(h);
		return rc;
	}
	os_mutex_lock(h->lock);
	while (!h->started)
		os_cond_wait(h->changed, h->lock, NS_PER_SEC);
	rc = h->rc;
	os_mutex_unlock(h->lock);
	if (rc) {
		if (err)
			*err = h->err;
		http_server_close(h);
		return rc;
	}
	log_line(cfg->log, LOG_INFO, "answering HTTP%s on %s", cfg->cert_file ? " with TLS" : "",
		 cfg->address);
	*out = h;
	return 0;
}

void http_server_close(struct http_server *h)
{
	if (!h)
		return;
	atomic_store(&h->desk.ending, true);
	os_mutex_lock(h->lock);
	h->stop = true;
	os_wake(h->wake);
	os_mutex_unlock(h->lock);
	os_thread_join(h->thread);
	let_go(h);
}
