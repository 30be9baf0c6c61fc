/* Exports and windows of the past are made by another process of this program: see desk_run(). */
#include "http/desk_linux.h"

#include "store/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 2u
#define WAITING_MAX 8u
#define TURN_NS (20 * NS_PER_SEC)
#define MESSAGES_MAX 4000u
#define ARGS_MAX 16u

/* Wait for a turn. false: too many wait already, or it takes too long. */
static bool take_turn(struct desk *d)
{
	uint64_t end_ns = os_now_ns() + TURN_NS;
	bool mine;

	os_mutex_lock(d->lock);
	d->waiting++;
	while (d->running >= AT_ONCE && d->waiting <= WAITING_MAX && os_now_ns() < end_ns &&
	       !atomic_load(&d->ending))
		os_cond_wait(d->changed, d->lock, NS_PER_SEC);
	d->waiting--;
	mine = d->running < AT_ONCE && !atomic_load(&d->ending);
	d->running += mine;
	os_mutex_unlock(d->lock);
	return mine;
}

static void give_turn(struct desk *d)
{
	os_mutex_lock(d->lock);
	d->running--;
	os_cond_broadcast(d->changed);
	os_mutex_unlock(d->lock);
}

/* The last line that it said, without "recorder: ", as an error by its exit code. */
static int error_of(int code, struct buf *messages, struct err *err)
{
	static const char prefix[] = "recorder: ";
	char *at, *end;

	buf_putc(messages, '\0');
	end = messages->failed ? NULL : messages->data + messages->len - 1;
	while (end && end > messages->data && (end[-1] == '\n' || end[-1] == '\0'))
		*--end = '\0';
	at = end ? strrchr(messages->data, '\n') : NULL;
	at = at ? at + 1 : end ? messages->data : (char[]){"out of memory"};
	if (strncmp(at, prefix, sizeof(prefix) - 1) == 0)
		at += sizeof(prefix) - 1;
	return err_set(err, code == 2 ? ERR_USAGE : code == 3 ? ERR_NOT_FOUND : ERR_IO, "%.500s",
		       *at ? at : "the program that was to do it has failed");
}

static int run(struct desk *d, const char *const *args, int to, struct err *err)
{
	struct buf store = {0}, messages = {0};
	char *argv[ARGS_MAX + 3] = {(char[]){"/proc/self/exe"}};
	unsigned n = 1;
	int rc, code = 0;

	while (*args && n <= ARGS_MAX)
		argv[n++] = (char *)(uintptr_t)*args++;
	buf_printf(&store, "--store=%s", d->cfg->store_path);
	argv[n] = store.data;
	rc = buf_check(&store, "the store's path", err);
	if (!rc)
		rc = os_run_into(to, argv, DESK_PROGRAM_NS, &d->ending, &messages, MESSAGES_MAX,
				 &code, err);
	if (!rc && code)
		rc = error_of(code, &messages, err);
	buf_free(&messages);
	buf_free(&store);
	return rc;
}

/*
 * A file without a name in the store's own folder: nobody else can read that, and a service may
 * write nowhere else.
 */
static int open_file(const struct desk *d, int *out, struct err *err)
{
	struct buf path = {0};
	int rc;

	os_dirname(d->cfg->store_path, &path);
	rc = buf_check(&path, "a folder's name", err);
	if (!rc) {
		*out = open(path.data, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
		if (*out < 0)
			rc = err_os(err, "no temporary file in %s", path.data);
	}
	buf_free(&path);
	return rc;
}

/* Copied under a name, which nobody needs once it is open. */
static int copy_incident(struct desk *d, int64_t id, int *to, struct err *err)
{
	struct store *store = NULL;
	struct buf path = {0};
	uint64_t chance;
	int rc = os_random(&chance, sizeof(chance), err);

	buf_printf(&path, "%s.http-%016" PRIx64, d->cfg->store_path, chance);
	if (!rc)
		rc = buf_check(&path, "a file's name", err);
	if (!rc)
		rc = store_open(d->cfg->store_path, STORE_READ, &store, err);
	if (!rc)
		rc = store_copy_to_file(store, id, path.data, err);
	if (!rc) {
		*to = open(path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		rc = *to < 0 ? err_os(err, "cannot read %s", path.data) : 0;
	}
	os_remove(buf_text(&path), NULL);
	store_close(store);
	buf_free(&path);
	return rc;
}

int desk_copy(struct desk *d, int64_t id, int *to, struct err *err)
{
	int rc;

	if (!take_turn(d))
		return err_set(err, ERR_BUSY, "too many requests of this kind at once; try again");
	rc = copy_incident(d, id, to, err);
	give_turn(d);
	return rc;
}

int desk_run(struct desk *d, const char *const *args, int *to, struct err *err)
{
	int rc, file = -1;

	if (!take_turn(d))
		return err_set(err, ERR_BUSY, "too many requests of this kind at once; try again");
	rc = open_file(d, &file, err);
	if (!rc)
		rc = run(d, args, file, err);
	give_turn(d);
	if (rc && file >= 0)
		close(file);
	if (!rc)
		*to = file;
	return rc;
}
